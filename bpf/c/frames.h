// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// Walking return frames towards the root, and finding both ends of a stack.
#pragma once

#include "fold.h"
#include "info_table.h"
#include "window.h"

// advance moves w->sp from a frame, which has this info table, to the next one. It returns 1 when
// there is none, with header.stop set to the reason.
INLINE long advance(struct walk *w, const struct cached_info *c)
{
	u64 words = c->words;
	switch (c->type) {
	case STOP_FRAME:
		w->header.stop = STOP_ROOT;
		return 1;
	case UNDERFLOW_FRAME:
		if (!enter_chunk(w, window_word(w, 1), &w->sp)) {
			w->header.stop = STOP_UNREADABLE_STACK;
			return 1;
		}
		return 0;
	case RET_FUN:
		words = 3 + window_word(w, 1);
		break;
	case RET_BCO: {
		u64 size;
		// StgBCO: header, instrs, literals, ptrs, arity:u32, size:u32,
		// bitmap: size in words, …
		if (READ_USER(&size, sizeof(size), window_word(w, 1) + w->layout.header + BCO_BITMAP)) {
			w->header.stop = STOP_UNREADABLE_STACK;
			return 1;
		}
		words = 2 + size;
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

// walk_frame walks one frame. It returns 1 when the walk has ended, with header.stop set to
// the reason.
INLINE long walk_frame(struct walker *k)
{
	struct walk *w = k->walk;
	u8 why = STOP_IMPLAUSIBLE_INFO;
	if (w->frame_count >= w->max_frames || w->frames_left == 0 || w->sp >= w->walk_until)
		return 1; // header.stop stays STOP_BUDGET
	w->frames_left--;
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
	return advance(w, c);
}

// Frames walked in one callback of the loop: calling a callback costs as much as several
// frames.
#define PLAIN_FRAMES 8

// plain_frames gives the index of w->sp in the window, and the number of frames that may be
// walked from there without further checks.
INLINE u32 plain_frames(struct walk *w, u64 *at, u64 *end)
{
	if (w->window_words < FRAME_HEAD || w->frame_count >= w->max_frames || w->sp >= w->walk_until)
		return 0;
	*at = (w->sp - w->window_at) >> 3;
	*end = w->window_words - (FRAME_HEAD - 1);
	if (*end > (w->walk_until - w->window_at) >> 3)
		*end = (w->walk_until - w->window_at) >> 3;
	return w->frames_left;
}

// plain_words gives the size of a frame whose info table is cached and holds the size; 0 for
// any other frame.
INLINE u32 plain_words(struct walk *w, const struct cached_info *c, u64 info)
{
	u32 kind = c->kind;
	if (c->tag != info_tag(info, w->layout.incarnation) || !INFO_ADDRESS(info) ||
	    kind - FRAME_RETURN > FRAME_STM - FRAME_RETURN)
		return 0;
	return c->words;
}

// walk_plain walks frames with cached info tables as walk_frame does, until one completes
// the second copy of a cycle. These are nearly all frames of most stacks, so it does the
// least that is needed. False if walk_frame has to continue.
INLINE bool walk_plain(struct walk *w)
{
	u64 at, end, i;
	u32 n = w->frame_count;
	u32 frames = plain_frames(w, &at, &end);
	if (frames == 0)
		return false;
	if (frames > w->max_frames - n)
		frames = w->max_frames - n;
	ROLLED for (i = 0; i < PLAIN_FRAMES; i++) {
		UNKNOWN(at);
		if (i >= frames || at >= end)
			break;
		u64 word = at;
		OPAQUE(word);
		u64 info = w->window[word & WINDOW_MASK];
		struct cached_info *c = &w->infos[info_slot(info)];
		u32 words = plain_words(w, c, info);
		if (words == 0)
			break;
		u64 frame = info | ((u64)c->kind << FRAME_KIND_SHIFT);
		if (w->folding) {
			u32 before = n + i + 1 - c->position;
			if (c->walk != (u16)w->number || before > n + i || *frame_at(w, n + i - before) != frame)
				before = 0;
			u32 same = before && before == w->lag ? w->run + 1 : 1;
			if (same == before && before <= MAX_CYCLE)
				break;
			c->walk = w->number;
			c->position = n + i + 1;
			w->run = same;
			w->lag = before;
		}
		*frame_at(w, n + i) = frame;
		at += words;
	}
	UNKNOWN(i);
	w->sp = w->window_at + 8 * at;
	w->frame_count = n + i;
	w->frames_left -= i;
	return i == PLAIN_FRAMES;
}

// walk_cycle walks the frames that continue the cycle being folded. It remembers their
// sizes: from the cycle's second round on nothing is looked up.
INLINE bool walk_cycle(struct walk *w)
{
	u64 at, end, i;
	u32 first = w->frame_count - 1 - w->cycle;
	u32 frames = plain_frames(w, &at, &end);
	if (frames == 0)
		return false;
	ROLLED for (i = 0; i < PLAIN_FRAMES; i++) {
		UNKNOWN(at);
		if (i >= frames || at >= end)
			break;
		u64 word = at, step = w->phase;
		OPAQUE(word);
		OPAQUE(step);
		u64 info = w->window[word & WINDOW_MASK], frame = *frame_at(w, first + step);
		u32 words = w->cycle_words[step & (MAX_CYCLE - 1)];
		if (info != (frame & FRAME_ADDRESS_MASK))
			break;
		if (UNLIKELY(words == 0)) {
			struct cached_info *c = &w->infos[info_slot(info)];
			words = plain_words(w, c, info);
			if (words == 0)
				break;
			w->cycle_words[step & (MAX_CYCLE - 1)] = words > 0xff ? 0 : words;
		}
		at += words;
		if (++w->phase == w->cycle) {
			w->phase = 0;
			w->folded_copies++;
		}
	}
	UNKNOWN(i);
	w->sp = w->window_at + 8 * at;
	w->header.folded_frames += i;
	w->frames_left -= i;
	return i == PLAIN_FRAMES;
}

static long walk_frames(u32 i, void *context)
{
	struct walker *k = context;
	struct walk *w = k->walk;
	bool plain = w->cycle ? walk_cycle(w) : walk_plain(w);
	return plain ? 0 : walk_frame(k);
}

// walk_slot walks at most that many frames of the walk with that index, starting at its sp.
// The verifier looks once at a global function and all that it calls, but at a static one in
// every state in which it is called: that took it more than half of its time.
GLOBAL int walk_slot(u32 slot, u32 frames)
{
	struct walk *w = WALK_AT(slot);
	if (!w)
		return 0;
	struct walker k = {.walk = w};
	w->frames_left = frames;
	bpf_loop(frames, walk_frames, &k, 0);
	return 0;
}

// walk_on walks at most that many frames, starting at w->sp.
INLINE void walk_on(struct walker *k, u32 frames) { walk_slot(k->walk->slot, frames); }

// at_frame checks that w->sp is at a return frame.
INLINE bool at_frame(struct walker *k)
{
	struct walk *w = k->walk;
	u8 why;
	return sp_in_chunk(w) && ensure_window(w) && find_frame_table(k, window_word(w, 0), &why);
}

// find_frame checks whether the word at w->sp is a return frame, and advances w->sp if not.
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

// Words at the end of the oldest chunk that are searched for the root-most frames.
#define ROOT_WORDS (MAX_ROOT_FRAMES - 8)
// Words before them in which the walk synchronises with the frames.
#define STEP_WORDS 48

// hop_chunk follows one underflow frame, which is at the very end of its chunk. It ends the
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

// recover_root records the root-most frames of a stack whose leaf part has spent the budget.
// Frames can only be walked towards the root, so it starts at the first word near the root
// that is a return frame's info pointer. That may be a payload word (update frames of the
// profiling way have words that are never set), but a walk from it soon synchronises with
// the true frames: frames are recorded from a little further on, and only if the walk ends
// at the STOP frame. It is a separate function so that other walks do not fetch its code.
static NOINLINE int recover_root(struct walker *k)
{
	struct walk *w = k->walk;
	u32 leaf_frames = w->frame_count;
	w->header.skipped_words = 0;
	if (bpf_loop(MAX_CHUNKS, hop_chunk, k, 0) == MAX_CHUNKS) {
		w->header.skipped_words = 0;
		w->header.stop = STOP_CHUNK_LIMIT;
		return 0;
	}
	if (!sp_in_chunk(w))
		return 0;
	u64 from = w->chunk_hi - 8 * (ROOT_WORDS + STEP_WORDS);
	if (from > w->sp && from >= w->chunk_lo) {
		w->header.skipped_words += (from - w->sp) >> 3;
		w->sp = from;
	}
	w->window_words = 0;
	u64 searched = w->sp;
	w->header.stop = STOP_BUDGET;
	bpf_loop(TOP_SCAN_WORDS, find_frame, k, 0);
	if (!w->found)
		return 0;
	w->folding = 0;
	w->cycle = 0;
	w->max_frames = leaf_frames + 1 + MAX_ROOT_FRAMES;
	w->walk_until = w->chunk_hi - 8 * ROOT_WORDS;
	walk_on(k, STEP_WORDS);
	w->frame_count = leaf_frames;
	if (w->header.stop != STOP_BUDGET) {
		w->header.stop = STOP_BUDGET;
		w->header.skipped_words = 0;
		return 0;
	}
	w->header.skipped_words += (w->sp - searched) >> 3;
	push_frame(w, FRAME_SKIPPED, 0);
	w->walk_until = ~0ULL;
	walk_on(k, MAX_ROOT_FRAMES);
	if (w->header.stop == STOP_ROOT) {
		w->header.stop = STOP_RECOVERED;
	} else {
		w->header.stop = STOP_BUDGET;
		w->header.skipped_words = 0;
		w->frame_count = leaf_frames;
	}
	return 0;
}
