// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// The STG stack walker.
//
// Compiled Haskell keeps its returns not on the C stack but on a stack object
// in the heap, in chunks linked by underflow frames. A frame begins with an
// info pointer; the info table just below that address tells the frame's type
// and size (tables next to code; rts/include/rts/storage/InfoTables.h and
// stack_frame_sizeW of rts/include/rts/storage/ClosureMacros.h in GHC).
//
// Nothing here touches a kernel facility but READ_USER, so that the same code
// also compiles for user space and walks recorded memory.
#pragma once

#include "unwind.h"
#include "walk_state.h"

INLINE bool in_text(const struct process_layout *l, u64 address)
{
	return (address >= l->text_lo[0] && address < l->text_hi[0]) ||
	       (address >= l->text_lo[1] && address < l->text_hi[1]);
}

INLINE int frame_kind_of(u32 type)
{
	switch (type) {
	case RET_SMALL:
	case RET_BIG:
		return FRAME_RETURN;
	case RET_BCO:
		return FRAME_RET_BCO;
	case RET_FUN:
		return FRAME_RET_FUN;
	case UPDATE_FRAME:
		return FRAME_UPDATE;
	case CATCH_FRAME:
		return FRAME_CATCH;
	case UNDERFLOW_FRAME:
		return FRAME_UNDERFLOW;
	case STOP_FRAME:
		return FRAME_STOP;
	case ATOMICALLY_FRAME:
	case CATCH_RETRY_FRAME:
	case CATCH_STM_FRAME:
		return FRAME_STM;
	case ANN_FRAME:
		return FRAME_ANN;
	}
	return NO_FRAME;
}

// The info table as far as a frame needs it; it ends at the info pointer.
struct info_table_tail {
	u64 layout;
	u32 type;
	s32 srt;
};

// find_table gives what is known of the info table that a closure's or frame's
// first word points to, or null with *why set.
INLINE struct cached_info *find_table(struct walker *k, u64 info, u8 *why)
{
	struct walk *w = k->walk;
	u32 slot = ((u32)(info >> 3) ^ (u32)(info >> 15)) & (CACHE_ENTRIES - 1);
	struct cached_info *c = &k->cache->entries[slot];
	if (c->info == info && c->generation == w->layout.generation)
		return c;

	*why = STOP_IMPLAUSIBLE_INFO;
	if (!in_text(&w->layout, info))
		return 0;
	struct info_table_tail table;
	if (READ_USER(&table, sizeof(table), info - sizeof(table))) {
		*why = STOP_UNREADABLE_INFO;
		return 0;
	}
	u64 words = 1 + (table.layout & 0x3f);
	switch (table.type) {
	case RET_FUN:
	case RET_BCO:
		words = 0;
		break;
	case RET_BIG: {
		u64 bits;
		if (READ_USER(&bits, sizeof(bits), info + (u64)(s64)(s32)table.layout)) {
			*why = STOP_UNREADABLE_INFO;
			return 0;
		}
		if (bits >= 0xffff)
			return 0;
		words = 1 + bits;
	}
	}
	c->info = info;
	c->generation = w->layout.generation;
	c->words = words;
	c->type = table.type > 0xff ? 0 : table.type;
	c->kind = frame_kind_of(table.type);
	c->walk = w->number - 1;
	return c;
}

// find_frame_table is find_table for what must be a return frame.
INLINE struct cached_info *find_frame_table(struct walker *k, u64 info, u8 *why)
{
	struct cached_info *c = find_table(k, info, why);
	if (!c)
		return 0;
	if (c->kind == NO_FRAME) {
		*why = STOP_IMPLAUSIBLE_INFO;
		return 0;
	}
	return c;
}

// load_window makes the words at w->sp readable in w->window. False: the stack
// cannot be read.
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

// window_word reads the word at w->sp + 8*i out of the loaded window; i is less
// than FRAME_HEAD. Words past the chunk's end read as 0.
INLINE u64 window_word(struct walk *w, u32 i)
{
	u64 at = ((w->sp - w->window_at) >> 3) + i;
	if (at >= w->window_words)
		return 0;
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
	// What is left of the chunk may be shorter than a frame's head.
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

// end_cycle stops folding at a frame that is not the cycle's next. Copies that
// were begun but not completed are put back.
INLINE void end_cycle(struct walk *w)
{
	u32 n = w->frame_count - 1;
	u64 frame = w->frames[n & FRAME_MASK];
	u32 cycle = n - 1 - w->cycle;
	w->header.folded_frames -= w->phase;
	if (w->folded_copies == 0)
		n--; // the marker marks nothing
	for (u32 i = 0; i < MAX_CYCLE; i++) {
		if (i >= w->phase)
			break;
		w->frames[n & FRAME_MASK] = w->frames[(cycle + i) & FRAME_MASK];
		n++;
	}
	w->frames[n & FRAME_MASK] = frame;
	w->frame_count = (n & FRAME_MASK) + 1;
	w->cycle = 0;
	w->lag = 0;
}

// fold leaves the newest frame out if it continues a cycle, and begins to fold
// when it completes the second copy of one: that is when as many frames in a
// row as the cycle has were each seen last that many frames before.
INLINE void fold(struct walk *w, struct cached_info *c)
{
	u32 n = w->frame_count;
	if (w->cycle) {
		u32 expected = n - 2 - w->cycle + w->phase;
		if (w->frames[(n - 1) & FRAME_MASK] != w->frames[expected & FRAME_MASK]) {
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
	u32 lag = c->walk == w->number ? n - c->position : 0;
	c->walk = w->number;
	c->position = n;
	w->run = lag && lag == w->lag ? w->run + 1 : 1;
	w->lag = lag;
	if (lag && w->run == lag && lag <= MAX_CYCLE) {
		w->cycle = lag;
		w->phase = 0;
		w->folded_copies = 0;
		push_frame(w, FRAME_FOLDED, lag);
	}
}

// One frame. Returns 1 when the walk has ended, with header.stop saying why.
static long walk_frame(u32 i, void *context)
{
	struct walker *k = context;
	struct walk *w = k->walk;
	u8 why = STOP_IMPLAUSIBLE_INFO;
	if (w->frame_count >= w->max_frames)
		return 1; // STOP_BUDGET stands
	if (!sp_in_chunk(w)) {
		w->header.stop = STOP_OUTSIDE_CHUNK;
		return 1;
	}
	if (!ensure_window(w)) {
		w->header.stop = STOP_UNREADABLE_STACK;
		return 1;
	}
	u64 info = window_word(w, 0);
	struct cached_info *c = find_frame_table(k, info, &why);
	if (!c) {
		w->header.stop = why;
		return 1;
	}
	push_frame(w, c->kind, info);
	if (w->folding)
		fold(w, c);

	u64 words = c->words;
	switch (c->type) {
	case STOP_FRAME:
		w->header.stop = STOP_ROOT;
		return 1;
	case UNDERFLOW_FRAME:
		if (++w->chunks >= MAX_CHUNKS) {
			w->header.stop = STOP_CHUNK_LIMIT;
			return 1;
		}
		if (!enter_chunk(w, window_word(w, 1), &w->sp)) {
			w->header.stop = STOP_UNREADABLE_STACK;
			return 1;
		}
		return 0;
	case RET_FUN:
		words = 3 + window_word(w, 1);
		break;
	case RET_BCO: {
		u32 size;
		// StgBCO: header, instrs, literals, ptrs, arity:u32, size:u32
		if (READ_USER(&size, sizeof(size), window_word(w, 1) + w->layout.header + 28)) {
			w->header.stop = STOP_UNREADABLE_STACK;
			return 1;
		}
		words = 2 + (u64)size;
		break;
	}
	}
	if (words > MAX_FRAME_WORDS) {
		w->header.stop = STOP_IMPLAUSIBLE_INFO;
		return 1;
	}
	w->sp += 8 * words;
	return 0;
}

// Looks at the word at w->sp for a return frame, and moves on if it is none.
static long find_frame(u32 i, void *context)
{
	struct walker *k = context;
	struct walk *w = k->walk;
	u8 why;
	w->found = 0;
	if (!sp_in_chunk(w) || !ensure_window(w))
		return 1;
	if (find_frame_table(k, window_word(w, 0), &why)) {
		w->found = 1;
		return 1;
	}
	w->sp += 8;
	return 0;
}

// The end of the oldest chunk that is searched for the root-most frames.
#define ROOT_WORDS (MAX_ROOT_FRAMES - 8)

// Follows one underflow frame, which sits at its chunk's very end. Ends the
// loop at the oldest chunk.
static long hop_chunk(u32 i, void *context)
{
	struct walker *k = context;
	struct walk *w = k->walk;
	u64 end[2];
	u8 why;
	if (READ_USER(end, sizeof(end), w->chunk_hi - sizeof(end)))
		return 1;
	struct cached_info *c = find_frame_table(k, end[0], &why);
	if (!c || c->type != UNDERFLOW_FRAME)
		return 1;
	w->header.skipped_words += (w->chunk_hi - w->sp) >> 3;
	if (!enter_chunk(w, end[1], &w->sp) || !sp_in_chunk(w))
		return 1;
	return 0;
}

// recover_root records the root-most frames of a stack whose leaf part has
// spent the budget. Frames can only be walked rootwards, but a return frame's
// info pointer is hardly ever a mere payload word: so the search begins at the
// first such word near the root, and counts only if it ends at the STOP frame.
INLINE void recover_root(struct walker *k)
{
	struct walk *w = k->walk;
	u32 leaf_frames = w->frame_count;
	w->header.skipped_words = 0;
	bpf_loop(MAX_CHUNKS, hop_chunk, k, 0);
	if (!sp_in_chunk(w))
		return;
	u64 from = w->chunk_hi - 8 * ROOT_WORDS;
	if (from > w->sp && from >= w->chunk_lo) {
		w->header.skipped_words += (from - w->sp) >> 3;
		w->sp = from;
	}
	w->window_words = 0;
	u64 searched = w->sp;
	w->header.stop = STOP_BUDGET;
	bpf_loop(TOP_SCAN_WORDS, find_frame, k, 0);
	if (!w->found)
		return;
	w->header.skipped_words += (w->sp - searched) >> 3;
	push_frame(w, FRAME_SKIPPED, 0);
	w->folding = 0;
	w->max_frames = leaf_frames + 1 + MAX_ROOT_FRAMES;
	bpf_loop(MAX_ROOT_FRAMES, walk_frame, k, 0);
	if (w->header.stop == STOP_ROOT) {
		w->header.stop = STOP_RECOVERED;
	} else {
		w->header.stop = STOP_BUDGET;
		w->header.skipped_words = 0;
		w->frame_count = leaf_frames;
	}
}

// enter_thread takes a thread object's stack chunk and identity. False if the
// address is not that of a thread object.
INLINE bool enter_thread(struct walker *k, u64 tso, u64 *saved_sp)
{
	struct walk *w = k->walk;
	if (tso == 0 || (tso & 7) || READ_USER(w->tso, sizeof(w->tso), tso))
		return false;
	u8 why;
	struct cached_info *c = find_table(k, w->tso[0], &why);
	if (!c || c->type != TSO)
		return false;
	u64 stack = w->tso[(w->layout.tso_stackobj / 8) & (TSO_READ_WORDS - 1)];
	if (!enter_chunk(w, stack, saved_sp))
		return false;
	w->header.tso = w->tso[(w->layout.tso_id / 8) & (TSO_READ_WORDS - 1)];
	return true;
}

// enter_haskell takes the STG machine's state from the registers. True if they
// hold a Haskell context, with w->sp inside the current stack chunk.
INLINE bool enter_haskell(struct walker *k, u64 base, u64 sp)
{
	struct walk *w = k->walk;
	u64 reg_table[BASE_READ_LEN / 8];
	u64 saved_sp;
	if ((base & 7) || (sp & 7) || base == 0 || sp == 0)
		return false;
	if (READ_USER(reg_table, sizeof(reg_table), base + BASE_CURRENT_TSO))
		return false;
	if (!enter_thread(k, reg_table[0], &saved_sp))
		return false;
	// A strong invariant: the registers of foreign code do not form a
	// register table whose thread's stack contains the stack pointer.
	w->sp = sp;
	if (!sp_in_chunk(w)) {
		w->header.tso = 0;
		return false;
	}
	w->header.capability = (u16)reg_table[(BASE_CAPABILITY_NO - BASE_CURRENT_TSO) / 8];
	w->task = reg_table[(BASE_RUNNING_TASK - BASE_CURRENT_TSO) / 8];
	return true;
}

// enter_suspended finds the Haskell thread that waits for the safe foreign call
// which this OS thread is making. Its stack is saved, so Sp is at a frame.
INLINE bool enter_suspended(struct walker *k)
{
	struct walk *w = k->walk;
	u64 incall, tso = 0;
	if (!k->thread || k->thread->generation != w->layout.generation)
		return false;
	if (READ_USER(&incall, sizeof(incall), k->thread->task + w->layout.task_incall) ||
	    READ_USER(&tso, sizeof(tso), incall + INCALL_SUSPENDED_TSO))
		return false;
	if (tso == 0 && (READ_USER(&incall, sizeof(incall), incall + INCALL_PREV_STACK) ||
			 READ_USER(&tso, sizeof(tso), incall + INCALL_SUSPENDED_TSO)))
		return false;
	return enter_thread(k, tso, &w->sp) && sp_in_chunk(w);
}

// walk_from_top walks rootwards from the frame at w->sp.
INLINE void walk_from_top(struct walker *k)
{
	struct walk *w = k->walk;
	w->header.stop = STOP_BUDGET;
	w->folding = 1;
	// Folding leaves room in the record, but time is spent all the same.
	bpf_loop(w->max_frames + w->max_frames / 4, walk_frame, k, 0);
	if (w->header.folded_frames)
		w->header.flags |= SAMPLE_FOLDED;
	if (w->header.stop == STOP_BUDGET)
		recover_root(k);
}

// scan_top looks for the topmost return frame from w->sp on.
INLINE bool scan_top(struct walker *k)
{
	struct walk *w = k->walk;
	u64 top = w->sp;
	bpf_loop(TOP_SCAN_WORDS, find_frame, k, 0);
	if (!w->found)
		return false;
	if (w->sp != top)
		w->header.flags |= SAMPLE_TOP_SCANNED;
	return true;
}

// walk_haskell walks the Haskell stack that unwinding, or the sample itself,
// has arrived at. False if the registers hold no Haskell context.
INLINE bool walk_haskell(struct walker *k)
{
	struct walk *w = k->walk;
	struct unwind *u = &w->unwind;
	u64 sp = u->reg[DWARF_STG_SP], caller_sp = w->sp;
	if (!enter_haskell(k, u->reg[DWARF_BASE], sp))
		return false;
	if (w->outcome == OUTCOME_HASKELL) {
		w->sp = caller_sp;
		u8 why;
		if (sp_in_chunk(w) && ensure_window(w) && find_frame_table(k, window_word(w, 0), &why)) {
			w->header.flags |= SAMPLE_TOP_CFI;
			walk_from_top(k);
			return true;
		}
		// The row was wrong, or the frame is being built.
		w->sp = sp;
		w->window_words = 0;
	}
	if (scan_top(k))
		walk_from_top(k);
	else
		w->header.stop = STOP_TOP_AMBIGUOUS;
	return true;
}

// walk_suspended walks, as context, the stack of the Haskell thread that waits
// for what this OS thread is doing in C.
INLINE void walk_suspended(struct walker *k)
{
	struct walk *w = k->walk;
	if (!enter_suspended(k))
		return;
	w->header.flags |= SAMPLE_CONTEXT;
	push_frame(w, FRAME_CONTEXT, 0);
	if (scan_top(k))
		walk_from_top(k);
	else
		w->header.stop = STOP_TOP_AMBIGUOUS;
}

// walk_sample walks the stack of an interrupted thread from the registers in
// w->regs: C frames as far as they go, then the Haskell stack. What is recorded
// already stays leafwards of it. header.stop tells how it ended.
INLINE void walk_sample(struct walker *k)
{
	struct walk *w = k->walk;
	begin_unwind(&w->unwind, &w->regs);
	push_frame(w, FRAME_PC, w->unwind.pc);
	w->after_call = 0;
	w->outcome = OUTCOME_UNCOVERED;
	u32 leaf = w->frame_count;
	bpf_loop(MAX_C_FRAMES, unwind_frame, k, 0);
	bool via_c = w->frame_count > leaf;

	w->header.stop = w->outcome == OUTCOME_FAILED || w->outcome == OUTCOME_GOING_ON ? STOP_C_UNWIND : STOP_NO_HASKELL;
	if (!k->haskell)
		return;
	if (w->outcome == OUTCOME_HASKELL || w->outcome == OUTCOME_UNCOVERED) {
		if (walk_haskell(k)) {
			if (via_c)
				w->header.flags |= SAMPLE_VIA_C;
			return;
		}
	}
	walk_suspended(k);
}

// code_of gives the code that a closure runs when it is entered.
INLINE bool code_of(u64 closure, u64 *code)
{
	return !READ_USER(code, sizeof(*code), closure & ~7ULL);
}

// Leaves one of the frames that a failing heap check pushes. Ends the loop at
// the code that wanted to allocate, with its address in the record.
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

// walk_allocation walks the stack of a thread whose heap check has found the
// nursery full. There Sp is at a frame that the check has pushed.
INLINE void walk_allocation(struct walker *k)
{
	struct walk *w = k->walk;
	w->found = 0;
	w->header.stop = STOP_NO_HASKELL;
	if (!enter_haskell(k, REG_BASE(&w->regs), REG_STG_SP(&w->regs)))
		return;
	w->header.stop = STOP_TOP_AMBIGUOUS;
	bpf_loop(4, unwrap_allocation, k, 0);
	if (w->found)
		walk_from_top(k);
}

// begin_walk clears what the sample before has left.
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
	w->chunks = 0;
	w->window_words = 0;
	w->window_limit = 8 * FIRST_WINDOW_WORDS;
	w->cycle = 0;
	w->lag = 0;
	w->number++;
	w->task = 0;
}
