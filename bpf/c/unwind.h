// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// Unwinding by call frame information: one step out of a C frame, and the caller's Sp at any
// instruction of Haskell code.
//
// User space compiles .eh_frame and .debug_frame into sorted rows of addresses and a table
// of distinct rules. The including file defines access to them:
//
//	UNWIND_ROW(index), UNWIND_RULE(index), UNWIND_BUCKET(index): pointers,
//	null when out of range
//	FIND_REGIONS(pid): the process's struct process_regions, null without any
#pragma once

#include "walk_state.h"

// Maximum number of C frames followed.
#define MAX_C_FRAMES 48

enum unwind_outcome {
	OUTCOME_GOING_ON = 0,
	OUTCOME_HASKELL,   // at Haskell code with CFI: w->sp is the caller's Sp
	OUTCOME_UNCOVERED, // at code without CFI
	OUTCOME_ROOT,	   // at the C stack's end
	OUTCOME_FAILED,
};

struct region_search {
	const struct process_regions *process;
	u64 pc;
	u32 found; // index of the region, MAX_REGIONS if there is none
};

static long search_region(u32 i, void *context)
{
	struct region_search *s = context;
	if (i >= MAX_REGIONS || i >= s->process->count)
		return 1;
	const struct unwind_region *r = &s->process->regions[i];
	if (s->pc < r->start || s->pc >= r->end)
		return 0;
	s->found = i;
	return 1;
}

// learn_region caches the region that contains a code address.
static NOINLINE int learn_region(struct walk *w, u64 pc)
{
	struct known_region *known = &w->regions[known_region_slot(pc)];
	const struct process_regions *p = FIND_REGIONS(w->twin);
	struct region_search region = {.process = p, .pc = pc, .found = MAX_REGIONS};
	known->version = 0;
	if (!p)
		return 0;
	bpf_loop(MAX_REGIONS, search_region, &region, 0);
	u32 found = region.found;
	if (found >= MAX_REGIONS)
		return 0;
	OPAQUE(found);
	known->region = p->regions[found & (MAX_REGIONS - 1)];
	known->version = p->version;
	return 0;
}

// search_rule returns the rule at a code address, null if there is none.
INLINE const struct unwind_rule *search_rule(struct walk *w, u64 pc)
{
	const struct known_region *known = &w->regions[known_region_slot(pc)];
	const struct unwind_region *r = &known->region;
	if (known->version != w->regions_version || pc < r->start || pc >= r->end)
		learn_region(w, pc);
	if (known->version == 0 || pc < r->base)
		return 0;
	u64 bucket = (pc - r->base) >> UNWIND_BUCKET_SHIFT;
	if (bucket >= r->bucket_count)
		return 0;
	const struct unwind_bucket *b = UNWIND_BUCKET(r->first_bucket + (u32)bucket);
	if (!b)
		return 0;
	u32 addr = (u32)(pc - r->base);
	u32 lo = r->first_row + b->first, hi = r->first_row + b->last + 1; // the row is in [lo, hi)
	const struct unwind_row *row;
	// A bucket has at most as many rows as bytes of code.
	ROLLED for (u32 i = 0; i <= UNWIND_BUCKET_SHIFT; i++) {
		if (hi - lo <= 1)
			break;
		u32 middle = lo + (hi - lo) / 2;
		row = UNWIND_ROW(middle);
		if (!row)
			return 0;
		if (row->addr <= addr)
			lo = middle;
		else
			hi = middle;
	}
	row = UNWIND_ROW(lo);
	if (!row || row->addr > addr)
		return 0;
	return UNWIND_RULE(r->first_rule + row->rule);
}

// learn_rule caches the rule at a code address, in the walk with that index.
GLOBAL int learn_rule(u32 slot, u64 pc)
{
	struct walk *w = WALK_AT(slot);
	if (!w)
		return 0;
	struct cached_rule *c = &w->rules[rule_slot(pc)];
	const struct unwind_rule *rule = w->regions_version ? search_rule(w, pc) : 0;
	c->pc = pc;
	c->version = w->regions_version;
	if (rule)
		c->rule = *rule;
	if (!rule || c->rule.kind == UNWIND_UNKNOWN)
		c->rule.kind = UNWIND_NONE;
	return 0;
}

// find_rule returns the rule at a code address, of kind UNWIND_NONE if there is none.
INLINE const struct unwind_rule *find_rule(struct walk *w, u64 pc)
{
	struct cached_rule *c = &w->rules[rule_slot(pc)];
	if (UNLIKELY(c->pc != pc || c->version != w->regions_version))
		learn_rule(w->slot, pc);
	return &c->rule;
}

// load_c_window reads words of the C stack into w->window, as many as there are from the
// address on.
INLINE bool load_c_window(struct walk *w, u64 from)
{
	w->window_at = from;
	w->window_words = C_WINDOW_WORDS;
	if (!READ_USER(w->window, 8 * C_WINDOW_WORDS, from))
		return true;
	w->window_words = SAVE_AREA_WORDS;
	if (!READ_USER(w->window, 8 * SAVE_AREA_WORDS, from))
		return true;
	// The page below the stack pointer need not be mapped.
	u64 page = (from | (PAGE_BYTES - 1)) + 1;
	if (page - from >= 8 * SAVE_AREA_WORDS)
		return false;
	w->window_at = page;
	return !READ_USER(w->window, 8 * SAVE_AREA_WORDS, page);
}

// restore_registers steps out of a C frame whose CFA is known. False if the stack cannot be
// read.
INLINE bool restore_registers(struct walk *w, const struct unwind_rule *rule, u64 cfa)
{
	struct unwind *u = &w->unwind;
	u64 from_reg = u->reg[rule->reg & (UNWIND_REGISTERS - 1)];
	u64 from = cfa - 8 * SAVE_AREA_WORDS;
	if (cfa & 7)
		return false;
	if ((from - w->window_at) / 8 + SAVE_AREA_WORDS > w->window_words && !load_c_window(w, from))
		return false;
	ROLLED for (u32 i = 0; i < sizeof(unwind_saved); i++) {
		s32 slot = rule->saved[i];
		bool counts_from_reg = rule->flags & (1 << i);
		u64 value;
		if (slot == 0 && !counts_from_reg) {
			if (i == 0)
				u->pc = u->reg[LINK_REGISTER];
			continue;
		}
		if (slot == UNWIND_LOST) {
			value = 0;
		} else {
			u64 at = (counts_from_reg ? from_reg : cfa) + 8 * (s64)slot;
			u64 word = (at - w->window_at) / 8;
			if (word < w->window_words && (at & 7) == 0) {
				OPAQUE(word);
				value = w->window[word & WINDOW_MASK];
			} else if (READ_USER(&value, sizeof(value), at)) {
				return false;
			}
		}
		if (i == 0)
			u->pc = CODE_ADDRESS(value);
		else
			u->reg[unwind_saved[i] & (UNWIND_REGISTERS - 1)] = value;
	}
	u->reg[DWARF_C_SP] = cfa;
	return true;
}

// enter_haskell_code takes the caller's Sp by the rule that nearly all Haskell code has.
// False if the rule is another.
INLINE bool enter_haskell_code(struct walk *w, const struct unwind_rule *rule)
{
	if (rule->kind != UNWIND_HASKELL || rule->reg != DWARF_STG_SP)
		return false;
	w->sp = w->unwind.reg[DWARF_STG_SP] + (s64)rule->offset;
	w->outcome = OUTCOME_HASKELL;
	return true;
}

// unwind_frame steps out of one frame. It ends the loop with w->outcome set.
static long unwind_frame(u32 i, void *context)
{
	struct walker *k = context;
	struct walk *w = k->walk;
	struct unwind *u = &w->unwind;
	// A return address may be past the last instruction of its function.
	const struct unwind_rule *rule = find_rule(w, u->pc - w->after_call);
	if (enter_haskell_code(w, rule))
		return 1;
	u64 cfa = u->reg[rule->reg & (UNWIND_REGISTERS - 1)] + (s64)rule->offset;
	w->outcome = OUTCOME_FAILED;
	switch (rule->kind) {
	case UNWIND_NONE:
		w->outcome = OUTCOME_UNCOVERED;
		return 1;
	case UNWIND_HASKELL_DEREF:
		if (READ_USER(&cfa, sizeof(cfa), cfa))
			return 1;
		// fall through
	case UNWIND_HASKELL:
		w->sp = cfa;
		w->outcome = OUTCOME_HASKELL;
		return 1;
	case UNWIND_ROOT:
		w->outcome = OUTCOME_ROOT;
		return 1;
	case UNWIND_FRAME_DEREF:
		if (READ_USER(&cfa, sizeof(cfa), cfa))
			return 1;
		break;
	case UNWIND_PLT:
		cfa = u->reg[rule->reg & (UNWIND_REGISTERS - 1)] + 8 + ((u32)(u->pc & 15) >= (u32)rule->offset ? 8 : 0);
		break;
	case UNWIND_FRAME:
		break;
	default:
		return 1;
	}
	if (!restore_registers(w, rule, cfa))
		return 1;
	if (u->pc == 0) {
		w->outcome = OUTCOME_ROOT;
		return 1;
	}
	w->after_call = (rule->flags & UNWIND_SIGNAL) ? 0 : 1;
	w->outcome = OUTCOME_GOING_ON;
	push_frame(w, FRAME_C, u->pc);
	return w->frame_count >= w->max_frames;
}
