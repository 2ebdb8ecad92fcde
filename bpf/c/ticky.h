// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// Reading the ticky counters of a program compiled with -ticky when it ends.
//
// Ticky counters are static data of the program, linked into a list when first counted
// (StgEntCounter of rts/include/rts/Ticky.h). They disappear with the process, so they are
// read when its run-time system shuts down.
#pragma once

#include "walk_state.h"

// No program has more counters; the limit ends the walk of a circular list.
#define MAX_TICKY 131072

struct ticky_words {
	u64 arity, allocated, name, kinds, rest[5];
};

_Static_assert(__builtin_offsetof(struct ticky_words, allocated) == TICKY_ALLOCATED - TICKY_ARITY, "StgEntCounter.allocd");
_Static_assert(__builtin_offsetof(struct ticky_words, name) == TICKY_NAME - TICKY_ARITY, "StgEntCounter.str");
_Static_assert(__builtin_offsetof(struct ticky_words, kinds) == TICKY_KINDS - TICKY_ARITY, "StgEntCounter.arg_kinds");
_Static_assert(__builtin_offsetof(struct ticky_words, rest) == TICKY_ENTRIES - TICKY_ARITY, "StgEntCounter.entry_count");
_Static_assert(__builtin_offsetof(struct ticky_words, rest[2]) == TICKY_ENTRIES_9_6 - TICKY_ARITY, "StgEntCounter.entry_count from 9.6");

#define TICKY_BATCH (MAX_FRAMES * 8 / sizeof(struct ticky_record))

// read_ticky reads the counter at an address and gives the address of the next, 0 after the
// last.
INLINE u64 read_ticky(const struct process_layout *l, u64 at, struct ticky_record *r)
{
	struct ticky_words w;
	u32 e = l->ticky_entries == TICKY_ENTRIES_9_6 ? 2 : 0;
	if ((at & 7) || READ_USER(&w, sizeof(w), at + TICKY_ARITY))
		return 0;
	r->counter = at;
	r->arity = w.arity;
	r->allocated = w.allocated;
	r->name = w.name;
	r->kinds = w.kinds;
	r->entries = e ? w.rest[2] : w.rest[0];
	r->allocs = e ? w.rest[3] : w.rest[1];
	r->padding = 0;
	return e ? w.rest[4] : w.rest[2];
}
