// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// on_shutdown runs when the run-time system of a -ticky program shuts down, and sends its counters.
#pragma once

#include "sample.h"

#include "ticky.h"

struct ticky_walk {
	struct walk *walk;
	u64 next;
};

INLINE void send_ticky(struct ticky_walk *t)
{
	struct walk *w = t->walk;
	u64 bytes = (u64)w->frame_count * 8;
	OPAQUE(bytes);
	bytes &= sizeof(w->frames) - 1;
	if (w->frame_count == MAX_FRAMES)
		bytes = sizeof(w->frames);
	w->header.frame_count = bytes / 8;
	if (bytes && bpf_ringbuf_output(&samples, &w->header, sizeof(w->header) + bytes, BPF_RB_NO_WAKEUP))
		count_lost();
	w->frame_count = 0;
}

static long take_ticky(u32 i, void *context)
{
	struct ticky_walk *t = context;
	struct walk *w = t->walk;
	u32 at = w->frame_count;
	if (!t->next)
		return 1;
	OPAQUE(at);
	struct ticky_record *r = (struct ticky_record *)&w->frames[at & (FRAME_MASK & ~7)];
	t->next = read_ticky(&w->layout, t->next, r);
	w->frame_count += sizeof(*r) / 8;
	if (w->frame_count >= MAX_FRAMES)
		send_ticky(t);
	return 0;
}

SEC("uprobe")
int on_shutdown(struct regs *ctx)
{
	u32 cpu = bpf_get_smp_processor_id(), walk = cpus + cpu;
	struct walk *w = bpf_map_lookup_elem(&walks, &walk);
	if (!w || w->busy)
		return 0;
	w->busy = 1;
	begin_sample(w, cpu);
	struct ticky_walk t = {.walk = w};
	if (w->haskell && w->layout.ticky_head && !READ_USER(&t.next, sizeof(t.next), w->layout.ticky_head)) {
		w->header.record = RECORD_TICKY;
		bpf_loop(MAX_TICKY, take_ticky, &t, 0);
		send_ticky(&t);
	}
	w->busy = 0;
	return 0;
}
