// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// on_construction runs where compiled code writes the info pointer of a constructor into the heap: each run is one value of it. All are
// counted, by place; some are sampled, with their stacks.
#pragma once

#include "transactions.h"

#define BPF_NOEXIST 1 // of uapi/linux/bpf.h

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 17);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct construction_key);
	__type(value, struct construction_site);
} construction_sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct construction_window);
} construction_control SEC(".maps");

// draws_construction reports whether the value of that number is sampled. The distances from one to the next are random, so that sampling
// cannot fall into step with a loop. Which of two threads that are here at once wins does not matter: user space takes a sample to stand
// for all values since the one before.
INLINE bool draws_construction(struct construction_site *s, u64 number, const struct construction_window *c)
{
	if (s->round == c->round && number < s->next)
		return false;
	if (s->round != c->round) {
		s->round = c->round;
		s->drawn = 0;
	}
	u64 halvings = c->draws ? s->drawn / c->draws : 0;
	u64 thin = 1ULL << (halvings > 20 ? 20 : halvings);
	s->drawn++;
	s->next = number + 1;
	if (thin > 1)
		s->next += bpf_get_prandom_u32() % (2 * thin - 1);
	return true;
}

// site_of gives the account of who makes a value. Where there is no room for another caller the place counts by itself.
INLINE struct construction_site *site_of(struct regs *ctx, struct construction_key *key)
{
	struct construction_site *s, fresh = {};
	if (key->cookie & CONSTRUCTION_BY_CALLER && READ_USER(&key->caller, sizeof(key->caller), REG_STG_SP(ctx)))
		key->caller = 0;
	s = bpf_map_lookup_elem(&construction_sites, key);
	if (s || !key->caller)
		return s;
	bpf_map_update_elem(&construction_sites, key, &fresh, BPF_NOEXIST);
	s = bpf_map_lookup_elem(&construction_sites, key);
	if (s)
		return s;
	key->caller = 0;
	return bpf_map_lookup_elem(&construction_sites, key);
}

SEC("uprobe")
int on_construction(struct regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	u32 zero = 0, cpu = bpf_get_smp_processor_id();
	struct construction_window *c = bpf_map_lookup_elem(&construction_control, &zero);
	if (!c || !c->open)
		return 0;
	struct construction_key key = {.cookie = cookie};
	struct construction_site *s = site_of(ctx, &key);
	if (!s)
		return 0;
	u64 number = __sync_fetch_and_add(&s->made, 1) + 1;
	if (!draws_construction(s, number, c))
		return 0;
	struct walk *w = probe_walk(cpu);
	if (!w)
		return 0;
	// The thread can be preempted here by another one that runs this program.
	if (w->busy) {
		w->stats.nested++;
		return 0;
	}
	w->busy = 1;
	begin_sample(w, cpu);
	if (w->haskell && w->layout.incarnation == (u32)(cookie >> CONSTRUCTION_INCARNATION_SHIFT)) {
		w->stats.samples++;
		begin_unwind(&w->unwind, ctx);
		w->header.period = cookie;
		w->header.large = key.caller;
		w->header.total = number;
		walk_transaction(w->slot);
	}
	w->busy = 0;
	return 0;
}
