// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// on_transaction runs where the run-time system has found out whether an attempt to run a
// transaction was valid: it has ended then. While such probes are in place, samples of CPU time inside of
// transactions are noted, so that it is known how the attempt ends that a sample was taken in.
#pragma once

#include "sent_once.h"

static u64 (*bpf_get_attach_cookie)(void *ctx) = (void *)174;

// Set by user space before loading on_event for an event of CPU time.
const volatile u8 with_transactions = 0;

#define DRAWN_BEFORE_HALVING 64

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct transaction_window);
} transaction_control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32); // incarnation
	__type(value, struct transaction_account);
} transaction_accounts SEC(".maps");

// transaction_spent gets the round in which there were as many hits as are allowed. It wakes user space, unlike the ring buffer of
// samples.
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 12); // a page, set by user space
} transaction_spent SEC(".maps");

// attempt is an attempt to run a transaction in which CPU time was sampled.
struct attempt {
	u64 window; // transaction_control.since when it was sampled first
	u64 samples;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct thread_key);
	__type(value, struct attempt);
} attempts SEC(".maps");

INLINE struct transaction_window *attempts_window(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&transaction_control, &zero);
}

// note_transaction marks a sample that was taken inside of a transaction, and notes the attempt.
INLINE void note_transaction(struct walk *w)
{
	const struct process_layout *l = &w->layout;
	u64 trec = w->tso[(l->tso_trec / 8) & (TSO_READ_WORDS - 1)];
	if (!w->haskell || !l->no_trec || !w->header.tso || !trec || trec == l->no_trec)
		return;
	w->header.flags |= SAMPLE_IN_TRANSACTION;
	const struct transaction_window *c = attempts_window();
	u32 incarnation = l->incarnation;
	struct transaction_account *a = bpf_map_lookup_elem(&transaction_accounts, &incarnation);
	if (!c || !a || !c->since || !c->accepts || w->header.time < c->since)
		return;
	struct thread_key key = {.tso = w->header.tso, .incarnation = incarnation};
	struct attempt fresh = {.window = c->since, .samples = 1}, *known = bpf_map_lookup_elem(&attempts, &key);
	w->header.flags |= SAMPLE_NOTED;
	__sync_fetch_and_add(&a->noted, 1);
	if (known && known->window == fresh.window) {
		known->samples++;
		return;
	}
	if (!bpf_map_update_elem(&attempts, &key, &fresh, 0))
		__sync_fetch_and_add(&a->begun, 1);
}

// end_attempt gives how many samples of CPU time were taken in the attempt that ends, and adds them up.
INLINE u64 end_attempt(struct transaction_account *a, u64 base, const struct process_layout *l, u32 incarnation, u32 end)
{
	const struct transaction_window *c = attempts_window();
	u64 tso;
	struct thread_key key = {.incarnation = incarnation};
	if (!c || READ_USER(&tso, sizeof(tso), base + BASE_CURRENT_TSO) || READ_USER(&key.tso, sizeof(key.tso), tso + l->tso_id))
		return 0;
	struct attempt *known = bpf_map_lookup_elem(&attempts, &key);
	if (!known)
		return 0;
	u64 samples = 0;
	if (known->window == c->since) {
		samples = known->samples;
		__sync_fetch_and_add(&a->sampled[end & (TRANSACTION_ENDS - 1)], samples);
		__sync_fetch_and_add(&a->ended, 1);
	}
	bpf_map_delete_elem(&attempts, &key);
	return samples;
}

// trec_entry is the first fields of a TRecEntry: the variable's address, the value that the transaction has read
// from it, and the value that it is to have after a commit.
struct trec_entry {
	u64 variable, expected, written;
};

struct trec_reader {
	struct walk *w;
	u64 entries;
};

// add_variable adds the i-th variable of an attempt's last chunk of entries to the record if it is why the attempt has failed, another value
// being in it than the attempt has read; or if an attempt that has committed wrote it. Its place in the chunk is in the
// word's top byte.
static long add_variable(u32 i, void *context)
{
	struct trec_reader *r = context;
	struct walk *w = r->w;
	struct trec_entry e;
	u64 value;
	if (READ_USER(&e, sizeof(e), r->entries + i * (u64)w->layout.trec_entry))
		return 1;
	if (w->header.site == TRANSACTION_COMMITTED)
		value = e.written;
	else if (READ_USER(&value, sizeof(value), e.variable + w->layout.header + TVAR_VALUE))
		return 1;
	if (value == e.expected)
		return 0;
	u32 before = w->frame_count;
	push_frame(w, i, e.variable);
	w->header.origin += w->frame_count - before;
	return 0;
}

// add_variables adds those variables of an attempt to the record. When an attempt ends, the run-time system keeps the last chunk
// of its record of entries (free_stg_trec_header of rts/STM.c), and takes the ones before apart.
INLINE void add_variables(struct walk *w)
{
	const struct process_layout *l = &w->layout;
	u64 trec = w->tso[(l->tso_trec / 8) & (TSO_READ_WORDS - 1)], chunk, count;
	struct trec_reader r = {.w = w};
	if (w->header.site > TRANSACTION_FAILED || !w->header.tso || !l->trec_entry || !l->no_trec || !trec || trec == l->no_trec)
		return;
	if (READ_USER(&chunk, sizeof(chunk), trec + l->header + TREC_CURRENT) ||
	    READ_USER(&count, sizeof(count), chunk + l->header + TREC_NEXT_ENTRY) || !count || count > TREC_CHUNK_ENTRIES)
		return;
	r.entries = chunk + l->header + TREC_ENTRIES;
	bpf_loop(count, add_variable, &r, 0);
}

// walk_transaction walks and sends a sample, in the walk with that index. The verifier reads it by itself.
GLOBAL int walk_transaction(u32 slot)
{
	struct walk *w = WALK_AT(slot);
	if (!w)
		return 0;
	struct walker k = {.walk = w};
	walk_sample(&k);
	w->header.origin = 0;
	add_variables(w);
	emit(w);
	if (w->layout.tso_label)
		send_label(w);
	return 0;
}

// sample_transaction sends a sample of an attempt that ends: of so many attempts, and of so many samples of CPU
// time. The frame of atomically, which has the transaction's code, is on top of the stack.
INLINE void sample_transaction(struct regs *ctx, struct walk *w, u32 end, u32 of, u64 samples)
{
	u64 code, info;
	u32 type;
	w->stats.samples++;
	begin_unwind(&w->unwind, ctx);
	w->header.site = end;
	w->header.period = of;
	w->header.large = samples;
	w->header.total = 0;
	if (!READ_USER(&code, sizeof(code), w->unwind.reg[DWARF_STG_SP] + w->layout.header) &&
	    !READ_USER(&info, sizeof(info), code & ~7ULL)) {
		w->header.total = info;
		// A partial application: header, arity and number of arguments, function, arguments.
		if (!READ_USER(&type, sizeof(type), info - 8) && type == PAP &&
		    !READ_USER(&code, sizeof(code), (code & ~7ULL) + w->layout.header + 8) &&
		    !READ_USER(&info, sizeof(info), code & ~7ULL))
			w->header.total = info;
	}
	walk_transaction(w->slot);
}

// draws gives the weight of the attempt if it is sampled, else 0. With every so many samples in a round it is half as likely as
// before, and its weight twice as much: user space learns only later that there are many.
INLINE u32 draws(struct transaction_account *a, const struct transaction_window *c)
{
	if (a->round != c->round) {
		a->round = c->round;
		a->drawn = 0;
	}
	u64 halvings = a->drawn / DRAWN_BEFORE_HALVING;
	u64 thin = (u64)(c->thin ? c->thin : 1) << (halvings > 8 ? 8 : halvings);
	if (((u64)bpf_get_prandom_u32() * thin) >> 32)
		return 0;
	__sync_fetch_and_add(&a->drawn, 1);
	return thin;
}

// count_hit counts a hit, whether or not there is a window, and notifies user space of one too many: it takes
// the probes out.
INLINE void count_hit(struct transaction_window *c)
{
	if (!c->most || __sync_fetch_and_add(&c->hits, 1) + 1 != c->most)
		return;
	u64 round = c->round;
	bpf_ringbuf_output(&transaction_spent, &round, sizeof(round), 0);
}

// is_zero reports whether the result that a branch is about to test is 0: that of a comparison, or a register by its
// number and one.
INLINE bool is_zero(struct regs *ctx, u32 in)
{
	if (!in)
		return REG_ZERO_FLAG(ctx);
	// A program's context can only be read at constant offsets.
	u64 value, user = bpf_task_pt_regs(bpf_get_current_task_btf());
	return !bpf_probe_read_kernel(&value, sizeof(value), (const void *)(user + 8 * (u64)(in - 1))) && value == 0;
}

SEC("uprobe")
int on_transaction(struct regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	u32 incarnation = cookie >> 8, cpu = bpf_get_smp_processor_id();
	u32 end = is_zero(ctx, cookie >> TRANSACTION_RESULT_SHIFT & 63) ? TRANSACTION_FAILED : cookie & (TRANSACTION_ENDS - 1);
	struct transaction_account *a = bpf_map_lookup_elem(&transaction_accounts, &incarnation);
	struct transaction_window *c = attempts_window();
	if (!c)
		return 0;
	count_hit(c);
	if (!a || !c->since)
		return 0;
	__sync_fetch_and_add(&a->ends[end & (TRANSACTION_ENDS - 1)], 1);
	u32 of = draws(a, c);
	if (!of && a->begun == a->ended)
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
	if (w->haskell && w->layout.incarnation == incarnation) {
		u64 samples = end_attempt(a, REG_BASE(ctx), &w->layout, incarnation, end);
		if (of || samples)
			sample_transaction(ctx, w, end, of, samples);
	}
	w->busy = 0;
	return 0;
}
