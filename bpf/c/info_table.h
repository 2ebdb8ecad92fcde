// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// Reading the info table behind a frame's or closure's first word, with a cache per CPU.
#pragma once

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

// info_table_tail is the part of an info table that a frame needs; it ends at the info
// pointer.
struct info_table_tail {
	u64 layout;
	u32 type;
	s32 srt;
};

_Static_assert(sizeof(struct info_table_tail) == INFO_LAYOUT, "StgInfoTable.layout");
_Static_assert(sizeof(struct info_table_tail) - __builtin_offsetof(struct info_table_tail, type) == INFO_TYPE, "StgInfoTable.type");

// absent notes that a part of an info table is not in memory. A page of code can be the process's without being in its page table: nothing
// of it has run yet, the kernel has reclaimed it, or a breakpoint was taken out there. A BPF program cannot have it brought in.
INLINE u8 absent(struct walk *w, u64 at)
{
	w->absent_in = w->header.pid;
	w->absent = at;
	return STOP_UNREADABLE_INFO;
}

// read_table reads an info table into the cache of the walk with that index. It returns 0, or
// the stop reason.
GLOBAL int read_table(u32 slot, u64 info)
{
	struct walk *w = WALK_AT(slot);
	if (!w || !INFO_ADDRESS(info) || !in_text(&w->layout, info))
		return STOP_IMPLAUSIBLE_INFO;
	struct info_table_tail table;
	u64 from = info - sizeof(table);
	if (READ_USER(&table, sizeof(table), from))
		return absent(w, from);
	u64 words = 1 + (table.layout & BITMAP_SIZE);
	switch (table.type) {
	case RET_FUN:
	case RET_BCO:
		words = 0;
		break;
	case RET_BIG: {
		u64 bits, at = info + (u64)(s64)(s32)table.layout;
		if (READ_USER(&bits, sizeof(bits), at))
			return absent(w, at);
		if (bits >= 0xffff)
			return STOP_IMPLAUSIBLE_INFO;
		words = 1 + bits;
	}
	}
	struct cached_info *c = &w->infos[info_slot(info)];
	c->tag = info_tag(info, w->layout.incarnation);
	c->words = words;
	c->type = table.type > 0xff ? 0 : table.type;
	c->kind = frame_kind_of(table.type);
	c->walk = w->number - 1;
	return 0;
}

// find_table returns the cached info table that a closure's or frame's first word points to,
// or null with *why set.
INLINE struct cached_info *find_table(struct walker *k, u64 info, u8 *why)
{
	struct walk *w = k->walk;
	struct cached_info *c = &w->infos[info_slot(info)];
	if (LIKELY(c->tag == info_tag(info, w->layout.incarnation) && INFO_ADDRESS(info)))
		return c;
	int failed = read_table(w->slot, info);
	*why = failed;
	return failed ? 0 : c;
}

// find_frame_table is find_table for a word that must be a return frame's.
INLINE struct cached_info *find_frame_table(struct walker *k, u64 info, u8 *why)
{
	struct cached_info *c = find_table(k, info, why);
	if (!c)
		return 0;
	if (c->kind == NO_FRAME) {
		*why = STOP_UNKNOWN_FRAME;
		return 0;
	}
	return c;
}
