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

#include "arch.h"
#include "record.h"

// GHC's closure types of stack frames, the same numbers from 8.10 to 9.14.
enum {
	RET_BCO = 29,
	RET_SMALL = 30,
	RET_BIG = 31,
	RET_FUN = 32,
	UPDATE_FRAME = 33,
	CATCH_FRAME = 34,
	UNDERFLOW_FRAME = 35,
	STOP_FRAME = 36,
	ATOMICALLY_FRAME = 55,
	CATCH_RETRY_FRAME = 56,
	CATCH_STM_FRAME = 57,
	ANN_FRAME = 65,
};

// Offsets from BaseReg, the same from 8.10 to 9.14.
#define BASE_CURRENT_TSO 872
#define BASE_CAPABILITY_NO 920
#define BASE_READ_LEN 56 // from rCurrentTSO through the capability's number

// The part of the stack read at once. Most stacks fit; a read costs more than
// a hundred nanoseconds whatever its length.
#define WINDOW_WORDS 256
#define WINDOW_MASK (WINDOW_WORDS - 1)
// Words of a frame that the walker looks at itself.
#define FRAME_HEAD 3

// How far above Sp the topmost return frame is looked for when Sp is not at one.
#define TOP_SCAN_WORDS 32

// Stack chunks followed; a chunk holds 32 KiB by default, so this is 128 MiB.
#define MAX_CHUNKS 4096

// A frame larger than this is taken for garbage: RET_FUN and RET_BCO frames
// carry their size in the target's memory.
#define MAX_FRAME_WORDS (1 << 20)

#define CACHE_ENTRIES 4096

// What is remembered of an info table, per CPU.
struct cached_info {
	u64 info;
	u32 generation;
	u16 words; // frame size; 0 = depends on the frame
	u8 type;
	u8 kind;
};

// Words of a TSO that are read: through the id in the profiling way of
// GHC ≥ 9.10, rounded up to a power of two so that an index can be masked.
#define TSO_READ_WORDS 16

struct walk {
	struct sample_header header;
	u64 frames[MAX_FRAMES];
	u64 window[WINDOW_WORDS];
	u64 window_at;	  // address of window[0]
	u32 window_words; // how many are valid
	u32 max_frames;
	u64 sp;
	u64 chunk_lo;
	u64 chunk_hi;
	u32 frame_count;
	u32 chunks;
	struct process_layout layout;
	u64 tso[TSO_READ_WORDS];
	struct regs regs;
};

struct info_cache {
	struct cached_info entries[CACHE_ENTRIES];
};

// What a step of a walk works on: both of the current CPU.
struct walker {
	struct walk *walk;
	struct info_cache *cache;
};

INLINE void push_frame(struct walk *w, u32 kind, u64 address)
{
	u32 n = w->frame_count;
	if (n >= MAX_FRAMES)
		return;
	w->frames[n] = (address & FRAME_ADDRESS_MASK) | ((u64)kind << FRAME_KIND_SHIFT);
	w->frame_count = n + 1;
}

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
	return -1;
}

// The info table as far as a frame needs it; it ends at the info pointer.
struct info_table_tail {
	u64 layout;
	u32 type;
	s32 srt;
};

// find_info gives what is known of a word that should be a return frame's info
// pointer, or null with *why set.
INLINE struct cached_info *find_info(struct walker *k, u64 info, u8 *why)
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
	int kind = frame_kind_of(table.type);
	if (kind < 0)
		return 0;
	u64 words;
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
		words = 1 + bits;
		if (bits >= 0xffff)
			return 0;
		break;
	}
	default:
		words = 1 + (table.layout & 0x3f);
	}
	c->info = info;
	c->generation = w->layout.generation;
	c->words = words;
	c->type = table.type;
	c->kind = kind;
	return c;
}

// load_window makes the words at w->sp readable in w->window. False: the stack
// cannot be read.
INLINE bool load_window(struct walk *w)
{
	u64 left = w->chunk_hi - w->sp;
	if (left > sizeof(w->window))
		left = sizeof(w->window);
	u32 bytes = left & ~7u;
	if (bytes == 0 || bytes > sizeof(w->window))
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

// One frame. Returns 1 when the walk has ended, with header.stop saying why.
static long walk_frame(u32 i, void *context)
{
	struct walker *k = context;
	struct walk *w = k->walk;
	u8 why = STOP_IMPLAUSIBLE_INFO;
	if (w->frame_count >= w->max_frames) {
		w->header.stop = STOP_BUDGET;
		return 1;
	}
	if (!sp_in_chunk(w)) {
		w->header.stop = STOP_OUTSIDE_CHUNK;
		return 1;
	}
	if (!ensure_window(w)) {
		w->header.stop = STOP_UNREADABLE_STACK;
		return 1;
	}
	u64 info = window_word(w, 0);
	struct cached_info *c = find_info(k, info, &why);
	if (!c) {
		w->header.stop = why;
		return 1;
	}
	push_frame(w, c->kind, info);

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

// Looks at one word for the topmost return frame. Ends the loop when it has
// found one, or at the chunk's end.
static long scan_top(u32 i, void *context)
{
	struct walker *k = context;
	struct walk *w = k->walk;
	u8 why;
	if (!sp_in_chunk(w) || !ensure_window(w))
		return 1;
	if (find_info(k, window_word(w, 0), &why)) {
		w->header.stop = STOP_ROOT;
		if (i > 0)
			w->header.flags |= SAMPLE_TOP_SCANNED;
		return 1;
	}
	w->sp += 8;
	return 0;
}

// enter_haskell takes the STG machine's state from the registers. True if they
// hold a Haskell context, with w->sp inside the current stack chunk.
INLINE bool enter_haskell(struct walk *w, u64 base, u64 sp)
{
	u64 reg_table[BASE_READ_LEN / 8];
	w->header.stop = STOP_NO_HASKELL;
	if ((base & 7) || (sp & 7) || base == 0 || sp == 0)
		return false;
	if (READ_USER(reg_table, sizeof(reg_table), base + BASE_CURRENT_TSO))
		return false;
	u64 tso = reg_table[0];
	if (tso == 0 || (tso & 7))
		return false;
	if (READ_USER(w->tso, sizeof(w->tso), tso))
		return false;
	u64 stack = w->tso[(w->layout.tso_stackobj / 8) & (TSO_READ_WORDS - 1)];
	u64 saved_sp;
	if (!enter_chunk(w, stack, &saved_sp))
		return false;
	// The strongest invariant there is: foreign code's registers do not
	// form a register table whose thread's stack contains them.
	w->sp = sp;
	if (!sp_in_chunk(w))
		return false;
	w->header.tso = w->tso[(w->layout.tso_id / 8) & (TSO_READ_WORDS - 1)];
	w->header.capability = (u16)reg_table[(BASE_CAPABILITY_NO - BASE_CURRENT_TSO) / 8];
	return true;
}
