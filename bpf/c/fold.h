// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// Folding: leaving the repetitions of recursion out of a record.
#pragma once

#include "walk_state.h"

// end_cycle stops folding at a frame that is not the cycle's next one. Frames of an
// incomplete copy are put back into the record.
INLINE void end_cycle(struct walk *w)
{
	u32 n = w->frame_count - 1;
	u64 frame = *frame_at(w, n);
	u32 cycle = n - 1 - w->cycle;
	w->header.folded_frames -= w->phase;
	if (w->folded_copies == 0)
		n--; // the marker marks nothing
	for (u32 i = 0; i < MAX_CYCLE; i++) {
		if (i >= w->phase)
			break;
		*frame_at(w, n) = *frame_at(w, cycle + i);
		n++;
	}
	*frame_at(w, n) = frame;
	w->frame_count = (n & FRAME_MASK) + 1;
	w->cycle = 0;
	w->lag = 0;
}

// lag_of gives the number of frames between the newest recorded frame and its previous
// occurrence; 0 if it has none.
INLINE u32 lag_of(struct walk *w, const struct cached_info *c)
{
	u32 n = w->frame_count;
	u32 lag = n - c->position;
	if (c->walk != (u16)w->number || lag >= n)
		return 0;
	// Walks are counted modulo 2^16.
	return *frame_at(w, n - 1 - lag) == *frame_at(w, n - 1) ? lag : 0;
}

// fold leaves the newest frame out if it continues a cycle. It begins to fold when a cycle's
// second copy is complete: that is when as many frames in a row as the cycle is long all
// have that length as their lag.
INLINE void fold(struct walk *w, struct cached_info *c)
{
	u32 n = w->frame_count;
	if (w->cycle) {
		u32 expected = n - 2 - w->cycle + w->phase;
		if (*frame_at(w, n - 1) != *frame_at(w, expected)) {
			end_cycle(w);
			return;
		}
		w->header.folded_frames++;
		w->frame_count = n - 1;
		if (++w->phase == w->cycle) {
			w->phase = 0;
			w->folded_copies++;
		}
		return;
	}
	u32 lag = lag_of(w, c);
	c->walk = w->number;
	c->position = n;
	w->run = lag && lag == w->lag ? w->run + 1 : 1;
	w->lag = lag;
	if (lag && w->run == lag && lag <= MAX_CYCLE) {
		w->cycle = lag;
		w->phase = 0;
		__builtin_memset(w->cycle_words, 0, sizeof(w->cycle_words));
		w->folded_copies = 0;
		push_frame(w, FRAME_FOLDED, lag);
	}
}
