// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// Walking Haskell stacks.
//
// Compiled Haskell code does not use the C stack but a stack object in the heap, made of
// chunks that underflow frames link. A frame begins with an info pointer. The info table,
// which ends at that address, has the frame's type and size (tables next to code;
// rts/include/rts/storage/InfoTables.h and stack_frame_sizeW of
// rts/include/rts/storage/ClosureMacros.h in GHC).
//
// The code below uses kernel facilities only through READ_USER, bpf_loop, WALK_AT and
// unwind.h's tables, so that it can also be compiled for user space and walk recorded memory.
// WALK_AT(slot) is the walk with that index, null if there is none.
#pragma once

#include "frames.h"
#include "thread.h"
#include "unwind.h"

// begin_walk resets the state of the previous sample's walk.
INLINE void begin_walk(struct walk *w, u32 max_frames)
{
	w->header.record = RECORD_SAMPLE;
	w->header.tso = 0;
	w->header.skipped_words = 0;
	w->header.folded_frames = 0;
	w->header.capability = NO_CAPABILITY;
	w->header.flags = 0;
	w->header.stop = STOP_NO_HASKELL;
	w->frame_count = 0;
	w->max_frames = max_frames;
	w->walk_until = ~0ULL;
	w->after_call = 0;
	w->outcome = OUTCOME_UNCOVERED;
	w->window_words = 0;
	w->window_limit = 8 * FIRST_WINDOW_WORDS;
	w->cycle = 0;
	w->lag = 0;
	w->number++;
	w->task = 0;
	w->base = 0;
	w->waiting = 0;
	w->entered = 0;
	w->top = 0;
	w->header.ccs = 0;
}

// walk_from_top walks towards the root, starting at the frame at w->sp.
INLINE void walk_from_top(struct walker *k)
{
	struct walk *w = k->walk;
	w->header.stop = STOP_BUDGET;
	w->folding = 1;
	w->top = w->sp;
	w->top_lo = w->chunk_lo;
	w->top_hi = w->chunk_hi;
	// Folded frames take no room in the record, but walking them takes time.
	walk_on(k, w->max_frames + w->max_frames / 4);
	if (w->header.folded_frames)
		w->header.flags |= SAMPLE_FOLDED;
	if (w->header.stop == STOP_BUDGET)
		recover_root(k);
}

// scan_top searches for the topmost return frame, starting at w->sp.
INLINE bool scan_top(struct walker *k)
{
	struct walk *w = k->walk;
	u64 top = w->sp;
	if (LIKELY(at_frame(k)))
		return true;
	bpf_loop(TOP_SCAN_WORDS, find_frame, k, 0);
	if (!w->found)
		return false;
	if (w->sp != top)
		w->header.flags |= SAMPLE_TOP_SCANNED;
	return true;
}

enum top {
	TOP_NONE,      // there is no Haskell stack
	TOP_FRAME,     // w->sp is at its topmost return frame
	TOP_AMBIGUOUS, // there is one, but its topmost frame was not found
};

// haskell_top finds the top of the Haskell stack after unwinding C frames, or at the
// sample's registers.
INLINE enum top haskell_top(struct walker *k)
{
	struct walk *w = k->walk;
	struct unwind *u = &w->unwind;
	u64 sp = u->reg[DWARF_STG_SP], caller_sp = w->sp;
	if (!enter_haskell(k, u->reg[DWARF_BASE], sp))
		return TOP_NONE;
	if (w->outcome == OUTCOME_HASKELL) {
		w->sp = caller_sp;
		if (LIKELY(at_frame(k))) {
			w->header.flags |= SAMPLE_TOP_CFI;
			return TOP_FRAME;
		}
		// The rule was wrong, or the frame is under construction.
		w->sp = sp;
		w->window_words = 0;
	}
	return scan_top(k) ? TOP_FRAME : TOP_AMBIGUOUS;
}

// suspended_top finds, as context, the stack of the Haskell thread that waits for this OS
// thread's foreign call.
INLINE enum top suspended_top(struct walker *k)
{
	struct walk *w = k->walk;
	if (!enter_suspended(k))
		return TOP_NONE;
	w->header.flags |= SAMPLE_CONTEXT;
	push_frame(w, FRAME_CONTEXT, 0);
	return scan_top(k) ? TOP_FRAME : TOP_AMBIGUOUS;
}

// walk_sample walks the stack of an interrupted thread from the registers in w->unwind: C
// frames as far as possible, then the Haskell stack. It appends to the frames already
// recorded, and sets header.stop to the reason why it ended.
INLINE void walk_sample(struct walker *k)
{
	struct walk *w = k->walk;
	push_frame(w, FRAME_PC, w->unwind.pc);
	u32 leaf = w->frame_count;
	if (!enter_haskell_code(w, find_rule(w, w->unwind.pc)))
		bpf_loop(MAX_C_FRAMES, unwind_frame, k, 0);
	bool via_c = w->frame_count > leaf;

	w->header.stop = STOP_NO_HASKELL;
	if (w->outcome == OUTCOME_FAILED || w->outcome == OUTCOME_GOING_ON)
		w->header.stop = STOP_C_UNWIND;
	else if (w->outcome == OUTCOME_HASKELL && w->haskell)
		w->header.stop = STOP_UNREADABLE_TSO;
	if (!w->haskell)
		return;
	enum top top = TOP_NONE;
	if (w->outcome == OUTCOME_HASKELL || w->outcome == OUTCOME_UNCOVERED) {
		top = haskell_top(k);
		if (top != TOP_NONE && via_c)
			w->header.flags |= SAMPLE_VIA_C;
	}
	if (top == TOP_NONE) {
		top = suspended_top(k);
		if (top == TOP_NONE)
			held_capability(w);
	}
	if (top == TOP_FRAME)
		walk_from_top(k);
	else if (top == TOP_AMBIGUOUS)
		w->header.stop = STOP_TOP_AMBIGUOUS;
}
