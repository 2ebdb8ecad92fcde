// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// on_rts_probe runs where the run-time system's code starts and ends GCs, and runs and stops
// threads. The probed instructions are calls, jumps and pushes, which the kernel emulates.

#include "capabilities.h"
#include "ids.h"
#include "kernel.h"
#include "timeline.h"
#include "walk_state.h"

const enum rts_probe *emit_rts_probe __attribute__((unused));
const enum rts_group *emit_rts_group __attribute__((unused));
const enum rts_gc_word *emit_rts_gc_word __attribute__((unused));

static u64 (*bpf_get_attach_cookie)(void *ctx) = (void *)174;
static long (*bpf_probe_read_user_str)(void *dst, u32 size, const void *src) = (void *)114;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22); // shared with the sampler
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024); // shared with the sampler
	__type(key, u32);
	__type(value, struct process_layout);
} layouts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192); // shared with the sampler
	__type(key, u32);
	__type(value, struct thread_state);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024); // as many as layouts
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct rts_globals);
} rts SEC(".maps");

// Each process has a slot for the counts of its groups, which the attach cookies of its probes
// have: index is RTS_GROUPS * slot + group. User space sets how many slots there are.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RTS_GROUPS);
	__type(key, u32);
	__type(value, struct rts_counts);
} rts_counted SEC(".maps");

// rts_hits are the hits of each group on all CPUs; each CPU adds its hits in steps. From
// rts_limits hits on, user space is notified by rts_spent: the probes' cost has reached
// their budget.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RTS_GROUPS);
	__type(key, u32);
	__type(value, u64);
} rts_hits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RTS_GROUPS);
	__type(key, u32);
	__type(value, u64);
} rts_limits SEC(".maps");

// rts_spent gets the indices of groups that have reached their limit. It wakes user space,
// unlike the ring buffer of records.
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 12); // a page, set by user space
} rts_spent SEC(".maps");

#define READ(dst, at) bpf_probe_read_user(dst, sizeof(*(dst)), (const void *)(at))

// word_at reads a word, all ones if it cannot be read.
INLINE u64 word_at(u64 at)
{
	u64 v;
	if (READ(&v, at))
		return -1ULL;
	return v;
}

INLINE u64 global(u64 at) { return at ? word_at(at) : 0; }

struct capability_totals {
	struct rts_record *record;
	u64 array;
	u64 total_allocated; // offset from BaseReg
	u32 n;
};

static long take_total(u32 i, void *context)
{
	struct capability_totals *t = context;
	u64 cap, total;
	if (i >= MAX_RTS_CAPABILITIES || READ(&cap, t->array + 8 * (u64)i) ||
	    READ(&total, cap + BASE_OF_CAPABILITY + t->total_allocated))
		return 1;
	t->record->words[GC_FIRST_CAPABILITY + i] = total;
	t->n++;
	return 0;
}

INLINE u64 array_of(const struct rts_globals *g)
{
	if (!g->capabilities)
		return 0;
	return capability_array(g->capabilities, g->capabilities_in_place, word_at(g->capabilities), g->main_capability);
}

INLINE u32 count_of(const struct rts_globals *g, u32 most)
{
	u32 count = g->n_capabilities ? (u32)word_at(g->n_capabilities) : 0;
	return count < most ? count : most;
}

INLINE void fill_gc(struct rts_record *r, struct regs *ctx, const struct rts_globals *g, u16 total_allocated, bool at_call)
{
	r->words[GC_LIVE] = REG_ARG3(ctx);
	r->words[GC_COPIED] = REG_ARG4(ctx);
	r->words[GC_SLOP] = REG_ARG5(ctx);
	r->words[GC_GENERATION] = (u32)REG_ARG6(ctx);
#ifdef REG_ARG7
	r->words[GC_THREADS] = (u32)REG_ARG7(ctx);
#else
	r->words[GC_THREADS] = (u32)word_at(STACK_ARG(ctx, 7, at_call));
#endif
	r->words[GC_MAX_COPIED] = word_at(STACK_ARG(ctx, 9, at_call)); // after the array of GC threads
	r->words[GC_BALANCED] = word_at(STACK_ARG(ctx, 10, at_call));
	r->words[GC_MBLOCKS] = global(g->mblocks_allocated);
	r->words[GC_BLOCKS] = global(g->n_alloc_blocks);
	r->words[GC_COUNT] = g->stats ? (u32)word_at(g->stats) : 0;
	if (g->gc_times && bpf_probe_read_user(&r->words[GC_REQUESTED], 16, (const void *)(REG_ARG2(ctx) + g->gc_times)))
		r->words[GC_STARTED] = 0;
	struct capability_totals t = {.record = r, .array = array_of(g), .total_allocated = total_allocated};
	bpf_loop(count_of(g, MAX_RTS_CAPABILITIES), take_total, &t, 0);
	r->header.frame_count = GC_FIRST_CAPABILITY + t.n;
}

struct spark_totals {
	struct rts_record *record;
	u64 array;
	u64 sparks; // offset in the Capability
};

static long take_sparks(u32 i, void *context)
{
	struct spark_totals *t = context;
	u64 cap, v;
	if (READ(&cap, t->array + 8 * (u64)i))
		return 1;
#pragma unroll
	for (u32 k = 0; k < SPARK_COUNTERS; k++) {
		if (READ(&v, cap + t->sparks + 8 * k))
			return 1;
		t->record->words[k] += v;
	}
	return 0;
}

// send_sparks sends what has become of sparks, in the record of the collection that has ended, which was sent.
INLINE void send_sparks(struct rts_record *r, const struct rts_globals *g, struct rts_counts *counts)
{
	struct spark_totals t = {.record = r, .array = array_of(g), .sparks = g->sparks};
	__builtin_memset(r->words, 0, 8 * SPARK_COUNTERS);
	bpf_loop(count_of(g, MAX_SPARK_CAPABILITIES), take_sparks, &t, 0);
	u64 any = 0;
#pragma unroll
	for (u32 k = 0; k < SPARK_COUNTERS; k++)
		any |= r->words[k];
	if (!any)
		return;
	r->header.event = RTS_SPARKS;
	r->header.frame_count = SPARK_COUNTERS;
	if (bpf_ringbuf_output(&samples, r, sizeof(r->header) + 8 * SPARK_COUNTERS, BPF_RB_NO_WAKEUP))
		counts->dropped++;
	else
		counts->records++;
}

INLINE u64 stop_reason_of(u64 base, u64 tso, const struct rts_globals *g)
{
	u64 why = word_at(base + BASE_RET);
	if (why != THREAD_BLOCKED)
		return why;
	u32 blocked = 0;
	if (g->why_blocked_wide ? bpf_probe_read_user(&blocked, 4, (const void *)(tso + g->why_blocked))
				: bpf_probe_read_user(&blocked, 2, (const void *)(tso + g->why_blocked)))
		return why;
	return blocked + STOPPED_FOREIGN_CALL;
}

// take_label reads the label into the record and gives its length, or 0.
INLINE u64 take_label(struct rts_record *r, struct regs *ctx, u32 kind, u16 header)
{
	u64 bytes;
	if (kind == RTS_LABEL_CSTRING) {
		long n = bpf_probe_read_user_str(r->words, MAX_LABEL, (const void *)REG_STG_R2(ctx));
		return n > 1 ? n - 1 : 0;
	}
	u64 array = REG_ARG3(ctx);
	if (READ(&bytes, array + header))
		return 0;
	if (bytes > MAX_LABEL)
		bytes = MAX_LABEL;
	OPAQUE(bytes);
	bytes &= MAX_LABEL;
	if (bpf_probe_read_user(r->words, bytes, (const void *)(array + header + 8)))
		return 0;
	return bytes;
}

INLINE void current_process(struct sample_header *h)
{
	struct task_struct *task = bpf_get_current_task_btf();
	h->pid = process_of(task);
	h->tid = id_of(task);
}

// note_task stores an OS thread's Task for the walker: during a safe foreign call only the run-time system's
// variable leads to the waiting thread, and that is not always found.
INLINE void note_task(u32 tid, u64 base, u32 incarnation)
{
	struct thread_state *known = bpf_map_lookup_elem(&threads, &tid);
	struct thread_state state = {.incarnation = incarnation};
	if (known && known->incarnation == incarnation)
		return; // a thread's Task never changes
	state.task = word_at(base + BASE_RUNNING_TASK);
	if (state.task != -1ULL)
		bpf_map_update_elem(&threads, &tid, &state, 0);
}

// over_rate limits the records of threads that a CPU sends per interval.
INLINE bool over_rate(struct rts_counts *c, u64 time)
{
	u64 interval = time >> RTS_INTERVAL_SHIFT;
	if (c->interval != interval) {
		c->interval = interval;
		c->in_interval = 0;
	}
	return ++c->in_interval > RTS_INTERVAL_RECORDS;
}

// hit counts a hit. At each step beyond the limit it notifies user space, so that a missed
// notification, or a limit raised in the meantime, is made good by the next step.
INLINE void hit(struct rts_counts *counts, u32 index)
{
	if (++counts->hits % RTS_HITS_STEP)
		return;
	u64 *hits = bpf_map_lookup_elem(&rts_hits, &index), *limit = bpf_map_lookup_elem(&rts_limits, &index);
	if (!hits || !limit)
		return;
	__sync_fetch_and_add(hits, RTS_HITS_STEP);
	if (*(volatile u64 *)hits >= *(volatile u64 *)limit)
		bpf_ringbuf_output(&rts_spent, &index, sizeof(index), 0);
}

INLINE int take(struct regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);
	u32 kind = cookie & 0xff;
	u32 group = kind >= RTS_RUN ? RTS_GROUP_THREADS : RTS_GROUP_GC;
	u32 index = RTS_GROUPS * (u32)(cookie >> RTS_SLOT_SHIFT) + group;
	struct rts_counts *counts = bpf_map_lookup_elem(&rts_counted, &index);
	if (!counts)
		return 0;
	hit(counts, index);

	struct rts_record r;
	__builtin_memset(&r, 0, sizeof(r));
	struct sample_header *h = &r.header;
	h->time = bpf_ktime_get_ns();
	current_process(h);
	h->cpu = bpf_get_smp_processor_id();
	h->event = kind;
	h->record = RECORD_RTS;
	h->capability = NO_CAPABILITY;
	h->total = counts->dropped;
	const struct process_layout *layout = bpf_map_lookup_elem(&layouts, &h->pid);
	const struct rts_globals *g = bpf_map_lookup_elem(&rts, &h->pid);
	if (!layout || !g)
		return 0;
	bool is_label = kind == RTS_LABEL_CSTRING || kind == RTS_LABEL_ARRAY;
	if (group == RTS_GROUP_THREADS && !is_label && over_rate(counts, h->time)) {
		counts->dropped++;
		return 0;
	}

	u64 base = 0, tso = 0;
	switch (kind) {
	case RTS_STOP:
		base = REG_BASE(ctx);
		break;
	case RTS_RUN:
		base = REG_ARG2(ctx);
		break;
	case RTS_SUSPEND:
		base = REG_ARG1(ctx);
		break;
	case RTS_LABEL_CSTRING:
		base = REG_BASE(ctx);
		tso = REG_STG_R1(ctx);
		break;
	case RTS_WAKEUP:
	case RTS_CREATE:
	case RTS_RESUME:
	case RTS_LABEL_ARRAY:
		tso = REG_ARG2(ctx);
		base = REG_ARG1(ctx) + BASE_OF_CAPABILITY;
		break;
	default:
		base = REG_ARG1(ctx) + BASE_OF_CAPABILITY;
	}
	// The verifier need not follow each kind to the end.
	UNKNOWN(kind);
	UNKNOWN(base);
	UNKNOWN(tso);
	u32 capability;
	bool none = kind == RTS_WORKER_END || kind == RTS_FLUSH_START || kind == RTS_FLUSH_END;
	if (!none) {
		if (READ(&capability, base + BASE_CAPABILITY_NO) || capability >= NO_CAPABILITY)
			return 0;
		h->capability = capability;
	}
	if (kind == RTS_RUN || kind == RTS_SUSPEND)
		note_task(h->tid, base, layout->incarnation);
	if (kind == RTS_RUN || kind == RTS_STOP || kind == RTS_SUSPEND)
		tso = word_at(base + BASE_CURRENT_TSO);
	if (tso && READ(&h->tso, tso + layout->tso_id))
		return 0;
	UNKNOWN(kind);
	UNKNOWN(tso);
	u64 bytes = sizeof(*h);
	if (kind == RTS_STOP)
		h->period = stop_reason_of(base, tso, g);
	UNKNOWN(kind);
	if (kind == RTS_GC_END) {
		fill_gc(&r, ctx, g, layout->total_allocated, cookie & RTS_AT_CALL);
		bytes += 8 * (u64)h->frame_count;
	}
	if (is_label) {
		u64 length = take_label(&r, ctx, kind, layout->header);
		h->record = RECORD_LABEL;
		h->frame_count = length;
		bytes += length;
	}
	OPAQUE(bytes);
	bytes &= 511;
	if (bytes > sizeof(r))
		return 0;
	if (bpf_ringbuf_output(&samples, &r, bytes, BPF_RB_NO_WAKEUP))
		counts->dropped++;
	else
		counts->records++;
	if (kind == RTS_GC_END && g->sparks)
		send_sparks(&r, g, counts);
	return 0;
}

SEC("uprobe")
int on_rts_probe(struct regs *ctx) { return take(ctx); }

// on_rts_probes is on_rts_probe for one link of all probes (Linux 6.6 or later).
SEC("uprobe.multi")
int on_rts_probes(struct regs *ctx) { return take(ctx); }

char program_license[] SEC("license") = "Dual BSD/GPL";
