// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// The programs that run at the target's allocation probes. Included by sample.bpf.c, whose
// maps they use.
#pragma once

#include "allocation.h"
#include "capabilities.h"

// Capabilities whose allocation is added up at a program's end.
#define MAX_CAPABILITIES 1024

// wanted counts a hit and decides whether to sample it: one in layout.thin, at random
// intervals, so that sampling cannot synchronise with the program.
INLINE bool wanted(struct alloc_account *a, const struct process_layout *l, u32 site)
{
	__sync_fetch_and_add(&a->hits[site & (ALLOC_SITES - 1)], 1);
	u32 thin = l->thin[site & (ALLOC_SITES - 1)];
	u32 *skip = &a->skip[site & (ALLOC_SITES - 1)];
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

// wanted_large counts and decides likewise for a large object, with a probability
// proportional to its size: the sample stands for all bytes since the one before.
INLINE bool wanted_large(struct alloc_account *a, const struct process_layout *l, u64 bytes)
{
	__sync_fetch_and_add(&a->hits[SITE_LARGE], 1);
	__sync_fetch_and_add(&a->large, bytes);
	u64 distance = (u64)l->thin[SITE_LARGE] * BLOCK_SIZE;
	if (distance == 0)
		return true;
	s64 left = a->skip_bytes - (s64)bytes;
	if (left <= 0)
		left = ((u64)bpf_get_prandom_u32() * 2 * distance) >> 32;
	else
		bytes = 0;
	a->skip_bytes = left;
	return bytes != 0;
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

INLINE void sample_allocation(struct regs *ctx, struct walk *w, u32 cpu, u32 site)
{
	begin_sample(w, cpu);
	if (!w->haskell)
		return;
	begin_unwind(&w->unwind, ctx);
	u64 base = w->unwind.reg[DWARF_BASE], why, wanted_bytes = 0;
	if (site == SITE_LARGE) {
		base = REG_ARG1(ctx) + BASE_OF_CAPABILITY;
	} else if (site == SITE_NURSERY) {
		// Threads also return here for a context switch, or a full stack.
		if (READ_USER(&why, sizeof(why), base + BASE_RET) || why != HEAP_OVERFLOW)
			return;
		// It is 0 if a primop ran out of memory before it began.
		if (READ_USER(&wanted_bytes, sizeof(wanted_bytes), base + BASE_HP_ALLOC))
			return;
	}
	u32 incarnation = w->layout.incarnation;
	struct alloc_account *a = bpf_map_lookup_elem(&alloc_accounts, &incarnation);
	if (!a)
		return;
	bool want = site == SITE_LARGE ? wanted_large(a, &w->layout, 8 * REG_ARG2(ctx))
				       : wanted(a, &w->layout, site);
	if (!want || !read_total(w, base))
		return;
	u16 capability = w->header.capability;
	w->header.site = site;
	w->header.period = site == SITE_LARGE ? 8 * REG_ARG2(ctx) : wanted_bytes;
	w->header.large = a->large;
	w->stats.samples++;
	struct walker k = {.walk = w};
	if (site == SITE_LARGE)
		walk_large(&k);
	else
		walk_allocation(&k);
	w->header.capability = capability;
	w->header.ccs = running_ccs(&k);
	emit(w);
	send_ccs_chain(w);
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
		return; // others than the first cannot be found
	}
	w->header.record = RECORD_ALLOCATED;
	w->header.total = sum.words;
	emit(w);
}

INLINE int at_probe(struct regs *ctx, u32 site)
{
	u32 cpu = bpf_get_smp_processor_id(), walk = cpus + cpu;
	struct walk *w = bpf_map_lookup_elem(&walks, &walk);
	if (!w)
		return 0;
	// The thread can be preempted here by another one that runs this program.
	if (w->busy) {
		w->stats.nested++;
		return 0;
	}
	w->busy = 1;
	if (site == SITE_NONE)
		send_allocated(w, cpu);
	else
		sample_allocation(ctx, w, cpu, site);
	w->busy = 0;
	return 0;
}

// on_nursery_full runs when a thread whose heap check has failed returns to the scheduler.
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
