// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// The programs that run at the target's allocation probes.
#pragma once

#include "take.h"

#include "allocation.h"
#include "capabilities.h"

// Capabilities whose allocation is added up at a program's end.
#define MAX_CAPABILITIES 1024

// rested gives how long to wait after a sample of a full nursery, or a survey, that took some
// time, ns: deep stacks take long to walk. Hits in between are counted. As long as the allowance is not spent it is less. It is
// random, so that sampling cannot synchronise with the program.
INLINE u64 rested(struct alloc_account *a, const struct process_layout *l, u64 took)
{
	u64 part = l->part, spent = a->spent + took;
	a->took += took;
	if (spent < l->allowance) {
		a->spent = spent;
		part = part / 32 + part * spent / l->allowance;
	}
	return took * (part / 2 + (((u64)bpf_get_prandom_u32() * part) >> 32));
}

// seen_sum adds up what the capabilities have allocated that probes have seen, in words.
struct seen_sum {
	const struct alloc_account *account;
	u64 total_allocated; // offset from BaseReg
	u64 words;
};

static long add_seen(u32 i, void *context)
{
	struct seen_sum *sum = context;
	u64 words, base = sum->account->bases[i & (ACCOUNT_CAPABILITIES - 1)];
	if (base && !READ_USER(&words, sizeof(words), base + sum->total_allocated))
		sum->words += words;
	return 0;
}

INLINE u64 seen_words(const struct alloc_account *a, const struct process_layout *l)
{
	struct seen_sum sum = {.account = a, .total_allocated = l->total_allocated};
	bpf_loop(ACCOUNT_CAPABILITIES, add_seen, &sum, 0);
	return sum.words;
}

// count_cycle adds what the run-time system has counted since the last collection: all bytes, and
// those of large objects. Each full nursery shows what its cycle has so far, so that cycles are
// counted whatever they last, and whether others were seen. made is the words of a large object
// that is not in the counts yet; large objects are looked at before the first collection only,
// since later they would select cycles that have some.
INLINE void count_cycle(struct alloc_account *a, const struct process_layout *l, u64 made)
{
	u64 stats[(STATS_ALLOCATED + 8) / 8], youngest, large, all = made ? 8 * made : BLOCK_SIZE;
	if (!l->stats || !l->generations || READ_USER(stats, sizeof(stats), l->stats) ||
	    READ_USER(&youngest, sizeof(youngest), l->generations) ||
	    READ_USER(&large, sizeof(large), youngest + GENERATION_NEW_LARGE))
		return;
	u64 cycle = 1 + (u32)stats[STATS_GCS / 8], allocated = stats[STATS_ALLOCATED / 8];
	if (made && cycle > 1)
		return;
	all += 8 * seen_words(a, l);
	if (all < allocated)
		return; // there are capabilities that were not seen yet
	all -= allocated;
	large = 8 * (large + made);
	if (large > all)
		large = all;
	if (a->cycle != cycle) {
		a->cycle = cycle;
		a->cycle_all = a->cycle_large = 0;
	}
	if (all > a->cycle_all) {
		a->counted += all - a->cycle_all;
		a->cycle_all = all;
	}
	if (large > a->cycle_large) {
		a->counted_large += large - a->cycle_large;
		a->cycle_large = large;
	}
}

// survey is a look at a capability's nursery. C code takes its blocks out of the nursery and
// puts them in front, so they come before the first that compiled code has filled.
struct survey {
	struct walker *k;
	u64 block, current; // block descriptors
	u64 blocks;
	u64 heap, threads, other, chunks, objects;
	u64 left;   // bytes of large objects that were not seen yet
	u32 behind; // whether the first block that compiled code has filled was seen
	u32 ended;  // whether the current block was reached
};

// Blocks of one nursery that are looked at, at most.
#define MAX_SURVEY 16384

// of_c_code reports whether closures of a type are made by the run-time system's C code.
// Compiled code makes small arrays, too, but its blocks do not often begin with one.
INLINE bool of_c_code(u32 type)
{
	return type == BLOCKING_QUEUE || (type >= ARR_WORDS && type <= MUT_ARR_PTRS_FROZEN_CLEAN) ||
	       (type >= PRIM && type <= TREC_CHUNK) ||
	       (type >= SMALL_MUT_ARR_PTRS_CLEAN && type <= SMALL_MUT_ARR_PTRS_FROZEN_CLEAN);
}

// survey_block takes in one block of the nursery. What a block begins with did not fit into
// the one before: the larger objects are, the more often they are first. So the share of
// blocks that begin with a type is the type's share of the bytes.
static long survey_block(u32 i, void *context)
{
	struct survey *s = context;
	u64 block[3]; // start, free, link
	if (!s->block || READ_USER(block, sizeof(block), s->block))
		return 1;
	u64 bytes = block[1] - block[0];
	if (s->block == s->current) {
		s->heap += BLOCK_SIZE; // it ends where Hp is
		s->ended = 1;
		return 1;
	}
	if (bytes > BLOCK_SIZE)
		bytes = BLOCK_SIZE;
	if (!s->behind) {
		u64 info;
		u8 why;
		struct cached_info *c = 0;
		if (!READ_USER(&info, sizeof(info), block[0]))
			c = find_table(s->k, info, &why);
		if (c && of_c_code(c->type)) {
			if (c->type == TSO || c->type == STACK)
				s->threads += bytes;
			else
				s->other += bytes;
			s->blocks++;
			s->block = block[2];
			return 0;
		}
		s->behind = 1;
		return 1;
	}
	s->heap += bytes;
	s->block = block[2];
	return 0;
}

// survey_pinned takes in a block of small pinned objects, which is not in the nursery any more.
static long survey_pinned(u32 i, void *context)
{
	struct survey *s = context;
	u64 block[3];
	if (!s->block || READ_USER(block, sizeof(block), s->block) || block[1] - block[0] > BLOCK_SIZE)
		return 1;
	s->other += block[1] - block[0];
	s->block = block[2];
	return 0;
}

// survey_large_object takes in one of the large objects since the last collection. They are in
// front of those that have survived one.
static long survey_large_object(u32 i, void *context)
{
	struct survey *s = context;
	u64 block[3], info;
	u8 why;
	if (!s->left || !s->block || READ_USER(block, sizeof(block), s->block) || READ_USER(&info, sizeof(info), block[0]))
		return 1;
	u64 bytes = block[1] - block[0];
	if (bytes > s->left)
		bytes = s->left;
	s->left -= bytes;
	struct cached_info *c = find_table(s->k, info, &why);
	if (c && c->type == STACK)
		s->chunks += bytes;
	else
		s->objects += bytes;
	s->block = block[2];
	return 0;
}

#define MAX_SURVEY_OBJECTS 512

// survey_large takes in the large objects since the last collection.
INLINE void survey_large(struct survey *s)
{
	const struct process_layout *l = &s->k->walk->layout;
	u64 youngest;
	if (!l->generations || READ_USER(&youngest, sizeof(youngest), l->generations) ||
	    READ_USER(&s->left, sizeof(s->left), youngest + GENERATION_NEW_LARGE) ||
	    READ_USER(&s->block, sizeof(s->block), youngest + GENERATION_LARGE_OBJECTS))
		return;
	s->left *= 8;
	bpf_loop(MAX_SURVEY_OBJECTS, survey_large_object, s, 0);
}

// survey_nursery looks at what has filled a nursery. It does so now and then, as rested says.
static NOINLINE int survey_nursery(struct walker *k, struct alloc_account *a, u64 base)
{
	struct walk *w = k->walk;
	u64 nursery[2], of[2], current_link;
	u64 begin = bpf_ktime_get_ns();
	if (begin < a->next_survey)
		return 0;
	a->next_survey = begin + 1000000;
	if (READ_USER(nursery, sizeof(nursery), base + BASE_NURSERY) || READ_USER(of, sizeof(of), nursery[0]) ||
	    READ_USER(&current_link, sizeof(current_link), nursery[1] + 16))
		return 0;
	struct survey s = {.k = k, .block = of[0], .current = nursery[1]};
	bpf_loop(MAX_SURVEY, survey_block, &s, 0);
	if (!s.ended && !s.behind)
		return 0;
	if (!s.ended) {
		if (!current_link) {
			// The nursery is full.
			if (of[1] > s.blocks)
				s.heap = (of[1] - s.blocks) * BLOCK_SIZE;
		} else {
			bpf_loop(MAX_SURVEY, survey_block, &s, 0);
			if (!s.ended)
				return 0;
		}
	}
	if (w->layout.pinned_blocks && !READ_USER(&s.block, sizeof(s.block), base + w->layout.pinned_blocks))
		bpf_loop(MAX_SURVEY, survey_pinned, &s, 0);
	__sync_fetch_and_add(&a->heap, s.heap);
	__sync_fetch_and_add(&a->threads, s.threads);
	__sync_fetch_and_add(&a->other, s.other);
	survey_large(&s);
	__sync_fetch_and_add(&a->chunks, s.chunks);
	__sync_fetch_and_add(&a->objects, s.objects);
	a->next_survey = begin + rested(a, &w->layout, bpf_ktime_get_ns() - begin);
	return 0;
}

// wanted counts a hit and decides whether to sample it: one in layout.thin, at random
// intervals.
INLINE bool wanted(struct alloc_account *a, const struct process_layout *l, u32 site, u64 now)
{
	__sync_fetch_and_add(&a->hits[site & (ALLOC_SITES - 1)], 1);
	u32 thin = l->thin[site & (ALLOC_SITES - 1)];
	u32 *skip = &a->skip[site & (ALLOC_SITES - 1)];
	if (site == SITE_NURSERY && now < a->next_sample)
		return false;
	if (thin <= 1)
		return true;
	// Threads on other CPUs decrement it too; a lost decrement does no harm.
	if (*skip) {
		*skip -= 1;
		return false;
	}
	*skip = bpf_get_prandom_u32() % (2 * thin - 1);
	return true;
}

// wanted_large counts a large object and decides whether to sample it: with a probability in
// proportion to its size, and always from layout.thin blocks on. Each is decided by itself, so that
// no order of objects favours one of them.
INLINE bool wanted_large(struct alloc_account *a, const struct process_layout *l, u64 bytes)
{
	__sync_fetch_and_add(&a->hits[SITE_LARGE], 1);
	__sync_fetch_and_add(&a->large, bytes);
	u64 distance = (u64)l->thin[SITE_LARGE] * BLOCK_SIZE;
	return bytes > ((u64)bpf_get_prandom_u32() * distance) >> 32;
}

// read_total reads how much a capability has allocated, and the capability's number.
INLINE bool read_total(struct walk *w, u64 base)
{
	u32 capability;
	if (READ_USER(&capability, sizeof(capability), base + BASE_CAPABILITY_NO) ||
	    READ_USER(&w->header.total, sizeof(w->header.total), base + w->layout.total_allocated))
		return false;
	w->header.capability = (u16)capability;
	return true;
}

// walk_site walks and sends a sample whose unwinding has begun, in the walk with that index. The
// verifier reads it by itself, and not once for each site.
GLOBAL int walk_site(u32 slot, u32 site)
{
	struct walk *w = WALK_AT(slot);
	if (!w)
		return 0;
	struct walker k = {.walk = w};
	// The walk overwrites both. A primop that runs out of memory before it begins wants no bytes.
	u16 capability = w->header.capability;
	bool checked = site != SITE_NURSERY || w->header.period != 0;
	if (site == SITE_LARGE)
		walk_large(&k);
	else
		walk_allocation(&k);
	if (checked)
		w->header.origin = ORIGIN_HEAP_CHECK;
	w->header.capability = capability;
	w->header.ccs = running_ccs(&k);
	emit(w);
	send_ccs_chain(w);
	return 0;
}

INLINE void sample_allocation(struct regs *ctx, struct walk *w, u32 cpu, u32 site)
{
	begin_sample(w, cpu);
	if (!w->haskell)
		return;
	u32 incarnation = w->layout.incarnation;
	struct alloc_account *a = bpf_map_lookup_elem(&alloc_accounts, &incarnation);
	if (!a)
		return;
	begin_unwind(&w->unwind, ctx);
	u64 base = w->unwind.reg[DWARF_BASE], why, wanted_bytes = 0;
	if (site == SITE_LARGE) {
		base = REG_ARG1(ctx) + BASE_OF_CAPABILITY;
	} else if (site == SITE_NURSERY) {
		// Threads also return here for a context switch, or a full stack.
		if (READ_USER(&why, sizeof(why), base + BASE_RET) || why != HEAP_OVERFLOW) {
			__sync_fetch_and_add(&a->hits[SITE_NONE], 1);
			return;
		}
		// It is 0 if a primop ran out of memory before it began.
		if (READ_USER(&wanted_bytes, sizeof(wanted_bytes), base + BASE_HP_ALLOC))
			return;
	}
	if (site == SITE_NURSERY) {
		u32 number;
		if (!READ_USER(&number, sizeof(number), base + BASE_CAPABILITY_NO))
			note_capability(a, number, base);
		count_cycle(a, &w->layout, 0);
	}
	bool want = site == SITE_LARGE ? wanted_large(a, &w->layout, 8 * REG_ARG2(ctx))
				       : wanted(a, &w->layout, site, w->header.time);
	if (!want || !read_total(w, base))
		return;
	note_capability(a, w->header.capability, base);
	if (site == SITE_LARGE)
		count_cycle(a, &w->layout, REG_ARG2(ctx));
	w->header.site = site;
	w->header.period = site == SITE_LARGE ? 8 * REG_ARG2(ctx) : wanted_bytes;
	w->header.large = site == SITE_LARGE ? a->large : a->hits[site & (ALLOC_SITES - 1)];
	w->stats.samples++;
	walk_site(w->slot, site);
	if (site == SITE_NURSERY) {
		a->next_sample = w->header.time + rested(a, &w->layout, w->header.walk_ns);
		struct walker k = {.walk = w};
		survey_nursery(&k, a, base);
	}
}

struct capability_sum {
	struct walk *walk;
	u64 array;
	u64 words;
};

static long add_capability(u32 i, void *context)
{
	struct capability_sum *sum = context;
	u64 capability, words;
	if (READ_USER(&capability, sizeof(capability), sum->array + 8 * (u64)i) ||
	    READ_USER(&words, sizeof(words), capability + BASE_OF_CAPABILITY + sum->walk->layout.total_allocated))
		return 1;
	sum->words += words;
	return 0;
}

// send_allocated sends the total that the process has allocated.
INLINE void send_allocated(struct walk *w, u32 cpu)
{
	struct capability_sum sum = {.walk = w};
	u32 n;
	begin_sample(w, cpu);
	if (!w->haskell || !w->layout.n_capabilities)
		return;
	if (READ_USER(&n, sizeof(n), w->layout.n_capabilities))
		return;
	if (w->layout.capabilities) {
		u64 first = 0;
		if (READ_USER(&first, sizeof(first), w->layout.capabilities))
			return;
		sum.array = capability_array(w->layout.capabilities, w->layout.capabilities_in_place, first, w->layout.main_capability);
		bpf_loop(n > MAX_CAPABILITIES ? MAX_CAPABILITIES : n, add_capability, &sum, 0);
	} else if (n != 1 || READ_USER(&sum.words, sizeof(sum.words), w->layout.main_capability + BASE_OF_CAPABILITY + w->layout.total_allocated)) {
		// Those that probes have seen, or what the last collection has counted.
		u32 incarnation = w->layout.incarnation;
		u64 allocated;
		struct alloc_account *a = bpf_map_lookup_elem(&alloc_accounts, &incarnation);
		if (!a)
			return;
		sum.words = seen_words(a, &w->layout);
		if (w->layout.stats && !READ_USER(&allocated, sizeof(allocated), w->layout.stats + STATS_ALLOCATED) &&
		    allocated / 8 > sum.words)
			sum.words = allocated / 8;
	}
	w->header.record = RECORD_ALLOCATED;
	w->header.total = sum.words;
	emit(w);
}

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1); // on_allocation
	__type(key, u32);
	__type(value, u32);
} at_allocation SEC(".maps");

// at_probe continues in on_allocation, which finds the site in the walk's header.
INLINE int at_probe(struct regs *ctx, u32 site)
{
	struct walk *w = probe_walk(bpf_get_smp_processor_id());
	if (!w)
		return 0;
	// The thread can be preempted here by another one that runs this program.
	if (w->busy) {
		w->stats.nested++;
		return 0;
	}
	w->busy = 1;
	w->header.site = site;
	bpf_tail_call(ctx, &at_allocation, 0);
	w->busy = 0;
	return 0;
}

// on_allocation is what the programs below have in common, which the verifier reads once for
// all of them.
SEC("uprobe")
int on_allocation(struct regs *ctx)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct walk *w = probe_walk(cpu);
	if (!w)
		return 0;
	u32 site = w->header.site;
	if (site == SITE_NONE)
		send_allocated(w, cpu);
	else
		sample_allocation(ctx, w, cpu, site & (ALLOC_SITES - 1));
	w->busy = 0;
	return 0;
}

// on_nursery_full runs when a thread whose heap check has failed returns to the scheduler. Each
// site has a program of its own, of which the kernel counts the runs and their time.
SEC("uprobe")
int on_nursery_full(struct regs *ctx) { return at_probe(ctx, SITE_NURSERY); }

// on_block_full runs when a heap check has taken the nursery's next block.
SEC("uprobe")
int on_block_full(struct regs *ctx) { return at_probe(ctx, SITE_BLOCK); }

// on_large_object runs in allocateMightFail(capability, words), where the object is known to
// be large.
SEC("uprobe")
int on_large_object(struct regs *ctx) { return at_probe(ctx, SITE_LARGE); }

// on_program_end runs when the run-time system takes its final counts at shutdown.
SEC("uprobe")
int on_program_end(struct regs *ctx) { return at_probe(ctx, SITE_NONE); }
