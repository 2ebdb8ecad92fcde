// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// Walking the stack of code that allocates.
#pragma once

#include "frames.h"
#include "thread.h"
#include "walk.h"

// code_of gives the entry code of a closure.
INLINE bool code_of(u64 closure, u64 *code)
{
	return !READ_USER(code, sizeof(*code), closure & ~7ULL);
}

// unwrap_allocation skips one of the frames that a failing heap check pushes. It ends the
// loop at the code that wanted to allocate, and records the code's address.
static long unwrap_allocation(u32 i, void *context)
{
	struct walker *k = context;
	struct walk *w = k->walk;
	u8 why;
	u64 code, words;
	if (!sp_in_chunk(w) || !ensure_window(w))
		return 1;
	u64 info = window_word(w, 0);
	struct cached_info *c = find_frame_table(k, info, &why);
	if (!c)
		return 1;
	if (info == w->layout.enter_info) {
		// A thunk: [stg_enter_info, closure]
		if (!code_of(window_word(w, 1), &code))
			return 1;
		w->entered = window_word(w, 1) & ~7ULL;
		words = 2;
	} else if (c->type == RET_FUN) {
		// A function and its arguments: [stg_gc_fun_info, size, closure, …]
		if (!code_of(window_word(w, 2), &code))
			return 1;
		words = 3 + window_word(w, 1);
	} else if (info >= w->layout.canned_lo && info <= w->layout.canned_hi) {
		// A returned value, on top of the continuation that is to get it.
		w->sp += 8 * (u64)c->words;
		return 0;
	} else if (info >= w->layout.cmm_lo && info <= w->layout.cmm_hi) {
		// A primop that waits for a collection. Most do so in a frame of its own, whose last
		// word is the primop's code, to run it again.
		code = info;
		words = c->words;
		w->header.origin = ORIGIN_PRIMOP;
		if (info >= w->layout.prim_lo && info < w->layout.prim_hi && words > 1 && words < WINDOW_WORDS)
			READ_USER(&code, sizeof(code), w->sp + 8 * (words - 1));
		if (info >= w->layout.prim_n_lo && info < w->layout.prim_n_hi)
			w->header.period = window_word(w, 1);
		if (code == w->layout.fork || code == w->layout.fork_on)
			w->header.origin = ORIGIN_FORK;
	} else {
		code = info;
		words = c->words;
	}
	if (words == 0 || words > MAX_FRAME_WORDS)
		return 1;
	push_frame(w, FRAME_PC, code);
	w->sp += 8 * words;
	w->found = 1;
	return 1;
}

// walk_top walks from the topmost frame of an allocating thread's stack. The record begins
// with the code that wanted to allocate; false if that was not found.
INLINE bool walk_top(struct walker *k)
{
	struct walk *w = k->walk;
	w->found = 0;
	bpf_loop(4, unwrap_allocation, k, 0);
	if (!w->found)
		return false;
	walk_from_top(k);
	return true;
}

// walk_allocation walks the stack of a thread whose heap check has failed: Sp is at a frame
// that the check has pushed.
INLINE void walk_allocation(struct walker *k)
{
	struct walk *w = k->walk;
	w->header.stop = STOP_NO_HASKELL;
	w->header.origin = ORIGIN_STACK_CHECK;
	if (!enter_haskell(k, w->unwind.reg[DWARF_BASE], w->unwind.reg[DWARF_STG_SP]))
		return;
	w->header.stop = STOP_TOP_AMBIGUOUS;
	walk_top(k);
}

// walk_large walks the stack of a thread that is in the RTS's allocateMightFail. If Haskell
// code called it by a primop, the record begins with that code: the frames in between are
// the same for all.
INLINE void walk_large(struct walker *k)
{
	struct walk *w = k->walk;
	struct unwind *u = &w->unwind;
	push_frame(w, FRAME_PC, u->pc);
	bpf_loop(MAX_C_FRAMES, unwind_frame, k, 0);
	u32 frames = w->frame_count;
	w->header.stop = STOP_NO_HASKELL;
	if (w->outcome != OUTCOME_HASKELL && w->outcome != OUTCOME_UNCOVERED)
		return;
	if (!enter_haskell(k, u->reg[DWARF_BASE], u->reg[DWARF_STG_SP]))
		return;
	w->frame_count = 0;
	w->header.stop = STOP_TOP_AMBIGUOUS;
	if (!walk_top(k))
		w->frame_count = frames;
}
