// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// Reading the stack a window at a time, within its chunk.
#pragma once

#include "walk_state.h"

// load_window reads the words at w->sp into w->window. False if the stack cannot be read.
INLINE bool load_window(struct walk *w)
{
	u64 left = w->chunk_hi - w->sp;
	if (left > w->window_limit)
		left = w->window_limit;
	w->window_limit = sizeof(w->window);
	u64 bytes = left & ~7ULL;
	if (bytes == 0)
		return false;
	// Verifiers before 6.2 see the bound only in the register that is passed on.
	OPAQUE(bytes);
	if (bytes > sizeof(w->window))
		return false;
	if (READ_USER(w->window, bytes, w->sp))
		return false;
	w->window_at = w->sp;
	w->window_words = bytes / 8;
	return true;
}

// window_word returns the word at w->sp + 8*i of the loaded window; i is less than
// FRAME_HEAD. Words past the chunk's end are 0.
INLINE u64 window_word(struct walk *w, u32 i)
{
	u64 at = ((w->sp - w->window_at) >> 3) + i;
	if (at >= w->window_words)
		return 0;
	OPAQUE(at);
	return w->window[at & WINDOW_MASK];
}

INLINE bool sp_in_chunk(struct walk *w)
{
	return w->sp >= w->chunk_lo && w->sp < w->chunk_hi && (w->sp & 7) == 0;
}

INLINE bool ensure_window(struct walk *w)
{
	u64 at = (w->sp - w->window_at) >> 3;
	if (w->sp >= w->window_at && at + FRAME_HEAD <= w->window_words)
		return true;
	// The rest of the chunk may be shorter than a frame's head.
	if (w->sp >= w->window_at && at < w->window_words &&
	    w->window_at + 8 * (u64)w->window_words == w->chunk_hi)
		return true;
	return load_window(w);
}

// enter_chunk takes a StgStack's bounds; sp stays as it is.
INLINE bool enter_chunk(struct walk *w, u64 stack, u64 *saved_sp)
{
	// stack_size and sp are 8 bytes apart in every way and version.
	struct {
		u32 size, flags;
		u64 sp;
	} s;
	if (READ_USER(&s, sizeof(s), stack + w->layout.stack_size))
		return false;
	w->chunk_lo = stack + w->layout.stack_first;
	w->chunk_hi = w->chunk_lo + 8 * (u64)s.size;
	w->window_words = 0;
	*saved_sp = s.sp;
	return true;
}
