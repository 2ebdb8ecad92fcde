// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// Which thunks a thread evaluates. Each has an update frame on the stack, with its address.
//
// A thread that enters a thunk does not mark it (lazy blackholing), so that another one may enter it too, and
// do the same work. Each thread marks the thunks on its stack when it pauses (threadPaused in rts/ThreadPaused.c),
// and stops those evaluations that it finds marked by another thread.
#pragma once

#include "frames.h"

// Thunks of a thread that are recorded at the most: half of them are the innermost, the others the outermost, which are most likely known to
// other threads; and frames that are walked for them.
#define MAX_THUNKS 64
#define INNER_THUNKS (MAX_THUNKS / 2)
#define MAX_THUNK_FRAMES 1024

// The event whose records these are; set by user space before loading on_event for an event of CPU time.
const volatile u16 thunk_event = NO_EVENT;

// owner_state says whether a black hole with that owner, a TSO or a queue of threads that wait for one, is the sample's thread's.
INLINE u32 owner_state(struct walker *k, u64 owner)
{
	struct walk *w = k->walk;
	u64 info, id;
	u8 why;
	if (owner & 7) // a value: those of threads are not tagged
		return THUNK_EVALUATED;
	if (READ_USER(&info, sizeof(info), owner))
		return THUNK_UNREADABLE;
	struct cached_info *c = find_table(k, info, &why);
	if (!c)
		return THUNK_UNREADABLE;
	if (c->type == BLOCKING_QUEUE) {
		if (READ_USER(&owner, sizeof(owner), owner + w->layout.header + QUEUE_OWNER))
			return THUNK_UNREADABLE;
	} else if (c->type != TSO) {
		return THUNK_EVALUATED;
	}
	if (READ_USER(&id, sizeof(id), owner + w->layout.tso_id))
		return THUNK_UNREADABLE;
	return id == w->header.tso ? THUNK_MARKED : THUNK_TAKEN;
}

INLINE u32 thunk_state(struct walker *k, u64 thunk)
{
	u64 info, owner;
	u8 why;
	if ((thunk & 7) || READ_USER(&info, sizeof(info), thunk))
		return THUNK_UNREADABLE;
	struct cached_info *c = find_table(k, info, &why);
	if (!c)
		return THUNK_UNREADABLE;
	if (c->type >= THUNK && c->type <= THUNK_SELECTOR)
		return THUNK_UNMARKED;
	if (c->type == AP || c->type == AP_STACK || c->type == WHITEHOLE)
		return THUNK_UNMARKED;
	if (c->type != BLACKHOLE) // an indirection, or, after a collection, the value itself
		return THUNK_EVALUATED;
	if (READ_USER(&owner, sizeof(owner), thunk + k->walk->layout.header + INDIRECTEE))
		return THUNK_UNREADABLE;
	return owner_state(k, owner);
}

// take_frame records the thunk of an update frame, and goes on to the next frame. It counts all thunks, in place of frames.
static long take_frame(u32 i, void *context)
{
	struct walker *k = context;
	struct walk *w = k->walk;
	u8 why;
	if (!sp_in_chunk(w) || !ensure_window(w))
		return 1;
	struct cached_info *c = find_frame_table(k, window_word(w, 0), &why);
	if (!c)
		return 1;
	if (c->type == UPDATE_FRAME) {
		u64 thunk = window_word(w, 1);
		// In the profiling way the address lies beyond the words that are sure to be in the window.
		if (w->layout.header != 8 && READ_USER(&thunk, sizeof(thunk), w->sp + w->layout.header))
			return 1;
		u32 n = w->frame_count++;
		if (n >= INNER_THUNKS)
			n = INNER_THUNKS + n % INNER_THUNKS;
		*frame_at(w, n) = thunk & FRAME_ADDRESS_MASK;
	}
	return advance(w, c);
}

// note_state adds its state to a recorded thunk.
static long note_state(u32 i, void *context)
{
	struct walker *k = context;
	u64 *at = frame_at(k->walk, i);
	*at |= (u64)thunk_state(k, *at) << FRAME_KIND_SHIFT;
	return 0;
}

// take_thunks puts the thunks that the sample's thread evaluates in place of the frames of the walk with that index.
GLOBAL int take_thunks(u32 slot)
{
	struct walk *w = WALK_AT(slot);
	if (!w)
		return 0;
	struct walker k = {.walk = w};
	u32 collections = 0;
	w->frame_count = 0;
	if (READ_USER(&collections, sizeof(collections), w->layout.stats + STATS_GCS))
		return 0;
	w->header.total = collections;
	w->sp = w->top;
	w->chunk_lo = w->top_lo;
	w->chunk_hi = w->top_hi;
	w->window_words = 0;
	bpf_loop(MAX_THUNK_FRAMES, take_frame, &k, 0);
	if (w->frame_count > MAX_THUNKS)
		w->frame_count = MAX_THUNKS;
	bpf_loop(w->frame_count, note_state, &k, 0);
	return 0;
}
