// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// A sample of CPU time, from where its unwinding has begun to its records. on_event and on_tick take them.
#pragma once

#include "sample.h"

#include "capabilities.h"
#include "evaluating.h"
#include "sent_once.h"
#include "transactions.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32); // incarnation
	__type(value, struct alloc_account);
} alloc_accounts SEC(".maps");

// send_evaluating sends the thunks that the sample's thread evaluates. It overwrites the walk's frames.
INLINE void send_evaluating(struct walk *w)
{
	take_thunks(w->slot);
	u64 bytes = 8 * (u64)w->frame_count;
	if (bytes > 8 * MAX_THUNKS)
		return;
	w->header.record = RECORD_EVALUATING;
	w->header.frame_count = w->frame_count;
	if (bpf_ringbuf_output(&samples, &w->header, sizeof(w->header) + bytes, BPF_RB_NO_WAKEUP))
		count_lost_of(thunk_event);
}

// note_running keeps where the capability is on which a thread was seen running, for the counts of a
// run-time system whose list of them is not known: it may have allocated where no probe was hit.
static NOINLINE int note_running(struct walk *w)
{
	u32 incarnation = w->layout.incarnation;
	struct alloc_account *a = bpf_map_lookup_elem(&alloc_accounts, &incarnation);
	if (a)
		note_capability(a, w->header.capability, w->base);
	return 0;
}

// walk_and_send takes a sample whose unwinding has begun.
INLINE void walk_and_send(struct walk *w)
{
	struct walker k = {.walk = w};
	walk_sample(&k);
	remember_thread(w);
	if (w->haskell)
		w->header.ccs = running_ccs(&k);
	if (with_transactions)
		note_transaction(w);
	if (w->base && w->layout.n_capabilities && !w->layout.capabilities)
		note_running(w);
	emit(w);
	if (thunk_event != NO_EVENT && w->top)
		send_evaluating(w);
	if (w->haskell && w->layout.tso_label)
		send_label(w);
	send_ccs_chain(w);
}
