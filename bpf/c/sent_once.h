// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// What is sent when it is first seen: the labels of threads, and cost-centre stacks.
#pragma once

#include "sample.h"

#include "ccs.h"

// labels has the address of the label that was last sent for each thread.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct thread_key);
	__type(value, u64);
} labels SEC(".maps");

// sent_ccs has the cost-centre stacks that were sent.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct ccs_key);
	__type(value, u8);
} sent_ccs SEC(".maps");

// send_label sends the label of the sample's thread, unless it was sent before. It
// overwrites the walk's frames.
INLINE void send_label(struct walk *w)
{
	u64 label = w->tso[(w->layout.tso_label / 8) & (TSO_READ_WORDS - 1)];
	struct thread_key key = {.tso = w->header.tso, .incarnation = w->layout.incarnation};
	if (!label || !key.tso)
		return;
	u64 *sent = bpf_map_lookup_elem(&labels, &key);
	if (sent && *sent == label)
		return;
	bpf_map_update_elem(&labels, &key, &label, 0);
	// StgArrBytes: header, byte count, bytes
	u64 bytes;
	if (READ_USER(&bytes, sizeof(bytes), label + w->layout.header))
		return;
	if (bytes > MAX_LABEL)
		bytes = MAX_LABEL;
	asm volatile("" : "+r"(bytes)); // keeps the mask, which the verifier needs
	bytes &= MAX_LABEL;
	if (READ_USER(w->frames, bytes, label + w->layout.header + 8))
		return;
	w->header.record = RECORD_LABEL;
	w->header.frame_count = bytes;
	bpf_ringbuf_output(&samples, &w->header, sizeof(w->header) + bytes, BPF_RB_NO_WAKEUP);
}

// send_ccs sends a cost-centre stack. If it was sent before, so were those below it, and the
// loop ends. It overwrites the walk's frames.
static long send_ccs(u32 depth, void *context)
{
	struct walk *w = *(struct walk **)context;
	struct ccs_record *r = (struct ccs_record *)w->frames;
	struct ccs_key key = {.ccs = r->prev, .incarnation = w->layout.incarnation};
	u8 sent = 1;
	if (key.ccs == 0 || bpf_map_lookup_elem(&sent_ccs, &key))
		return 1;
	r->ccs = key.ccs;
	read_ccs(r);
	if (depth == MAX_CCS_DEPTH - 1 && r->prev) {
		r->prev = 0;
		r->why = CCS_TOO_DEEP;
	}
	if (!bpf_ringbuf_output(&samples, &w->header, sizeof(w->header) + sizeof(*r), BPF_RB_NO_WAKEUP))
		bpf_map_update_elem(&sent_ccs, &key, &sent, 0);
	return 0;
}

// send_ccs_chain sends the sample's cost-centre stack and those below it, unless they were
// sent before.
INLINE void send_ccs_chain(struct walk *w)
{
	struct ccs_record *r = (struct ccs_record *)w->frames;
	if (!w->header.ccs)
		return;
	r->prev = w->header.ccs;
	w->header.record = RECORD_CCS;
	w->header.frame_count = sizeof(*r) / 8;
	bpf_loop(MAX_CCS_DEPTH, send_ccs, &w, 0);
}
