// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// on_event runs at every overflow of a sampled event, in the interrupt, and on_tick (tick.h) at
// the kernel's tick; the programs in alloc_probes.h run where the target allocates. Each run that samples sends one record to
// user space.

#include "kernel.h"
#include "record.h"
#include "walk_state.h"

// Rows and buckets lie in chunks, which user space makes when it fills them: the memory of an array is there from the
// start, and a host's programs may have a tenth of the most that there is room for.
struct unwind_row_chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 << UNWIND_CHUNK_SHIFT);
	__type(key, u32);
	__uint(value_size, sizeof(struct unwind_row));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1); // set by user space
	__type(key, u32);
	__array(values, struct unwind_row_chunk);
} unwind_rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); // set by user space
	__type(key, u32);
	__type(value, struct unwind_rule);
} unwind_rules SEC(".maps");

struct unwind_bucket_chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 << UNWIND_CHUNK_SHIFT);
	__type(key, u32);
	__uint(value_size, sizeof(struct unwind_bucket));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1); // set by user space
	__type(key, u32);
	__array(values, struct unwind_bucket_chunk);
} unwind_buckets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct process_regions);
} regions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, struct thread_state);
} threads SEC(".maps");

// One walk per CPU for events, then one per CPU for probes, then one per CPU for thread
// switches: a probe in user code can be interrupted by both others, and a switch by an
// event.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); // begins at a cache line
	__uint(max_entries, 3);		   // set by user space
	__type(key, u32);
	__type(value, struct walk);
} walks SEC(".maps");

INLINE struct walk *walk_at(u32 slot) { return bpf_map_lookup_elem(&walks, &slot); }

// in_chunk returns an element of a chunk, null where there is no such chunk yet.
INLINE const void *in_chunk(void *chunks, u32 index)
{
	u32 number = index >> UNWIND_CHUNK_SHIFT, within = index & ((1 << UNWIND_CHUNK_SHIFT) - 1);
	void *chunk = bpf_map_lookup_elem(chunks, &number);
	return chunk ? bpf_map_lookup_elem(chunk, &within) : 0;
}

INLINE const struct unwind_row *unwind_row_at(u32 index) { return in_chunk(&unwind_rows, index); }
INLINE const struct unwind_rule *unwind_rule_at(u32 index) { return bpf_map_lookup_elem(&unwind_rules, &index); }
INLINE const struct unwind_bucket *unwind_bucket_at(u32 index) { return in_chunk(&unwind_buckets, index); }
INLINE const struct process_regions *regions_of(u32 pid) { return bpf_map_lookup_elem(&regions, &pid); }
INLINE const struct thread_state *thread_of(u32 tid) { return bpf_map_lookup_elem(&threads, &tid); }
INLINE long note_thread(u32 tid, const struct thread_state *t) { return bpf_map_update_elem(&threads, &tid, t, 0); }

#define WALK_AT(slot) walk_at(slot)
#define FIND_REGIONS(pid) regions_of(pid)
#define FIND_THREAD(tid) thread_of(tid)
#define NOTE_THREAD(tid, state) note_thread(tid, state)
#define UNWIND_BUCKET(index) unwind_bucket_at(index)
#define UNWIND_ROW(index) unwind_row_at(index)
#define UNWIND_RULE(index) unwind_rule_at(index)
#define READ_USER(dst, size, at) bpf_probe_read_user(dst, size, (const void *)(at))
#include "allocation.h"
#include "capabilities.h"
#include "walk.h"
#include "ccs.h"
#include "ticky.h"
#include "evaluating.h"

// Set by user space before loading.
const volatile u32 max_frames = 128;
const volatile u16 event_index = 0;
const volatile u8 kernel_stacks = 0;
const volatile u32 cpus = 1;
// The inode of user space's pid namespace; 0 if it is the initial one.
const volatile u64 pidns_ino = 0;

// Types reach Go through BTF, which contains only types that are used.
const enum frame_kind *emit_frame_kind __attribute__((unused));
const enum stop_reason *emit_stop_reason __attribute__((unused));
const enum record_type *emit_record_type __attribute__((unused));
const enum sample_flags *emit_sample_flags __attribute__((unused));
const enum alloc_site *emit_alloc_site __attribute__((unused));
const enum alloc_origin *emit_alloc_origin __attribute__((unused));
const enum ccs_why *emit_ccs_why __attribute__((unused));
const struct ccs_record *emit_ccs_record __attribute__((unused));
const struct ticky_record *emit_ticky_record __attribute__((unused));
const struct thread_time *emit_thread_time __attribute__((unused));
const enum transaction_end *emit_transaction_end __attribute__((unused));
const struct transaction_window *emit_transaction_window __attribute__((unused));
const struct transaction_account *emit_transaction_account __attribute__((unused));
const enum thunk_state *emit_thunk_state __attribute__((unused));
const struct unwind_row *emit_unwind_row __attribute__((unused));
const struct unwind_bucket *emit_unwind_bucket __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22); // set by user space
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct process_layout);
} layouts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32); // incarnation
	__type(value, struct alloc_account);
} alloc_accounts SEC(".maps");

// Records that did not fit into the ring buffer, by event.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_EVENTS);
	__type(key, u32);
	__type(value, u64);
} lost SEC(".maps");

// labels has the address of the label that was last sent for each thread.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct thread_key);
	__type(value, u64);
} labels SEC(".maps");

// sent_ccs has the cost-centre stacks that were sent.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct ccs_key);
	__type(value, u8);
} sent_ccs SEC(".maps");

#include "targets.h"

INLINE void current_ids(struct sample_header *h)
{
	struct task_struct *task = bpf_get_current_task_btf();
	h->pid = process_of(task);
	h->tid = id_of(task);
}

// push_kernel_frames records the kernel's stack from the interrupted code on. That is at pc: what
// is above it is the interrupt's. 0 if the stack begins there.
INLINE void push_kernel_frames(void *ctx, struct walk *w, u64 pc)
{
	long bytes = bpf_get_stack(ctx, w->window, MAX_KERNEL_FRAMES * 8, 0);
	bool there = pc == 0;
	for (u32 i = 0; i < MAX_KERNEL_FRAMES; i++) {
		if (bytes < (long)(i + 1) * 8)
			break;
		there = there || w->window[i] == pc;
		if (there)
			push_frame(w, FRAME_KERNEL, w->window[i]);
	}
	if (!there)
		push_frame(w, FRAME_KERNEL, pc);
}

// enter_user loads the user registers of a thread that is in the kernel. 0 if it has none.
static NOINLINE int enter_user(struct walk *w)
{
	long user = bpf_task_pt_regs(bpf_get_current_task_btf());
	if (bpf_probe_read_kernel(&w->regs, sizeof(w->regs), (const void *)user) || !REGS_IN_USER(&w->regs))
		return 0;
	begin_unwind(&w->unwind, &w->regs);
	return 1;
}

INLINE void count_lost_of(u32 event)
{
	event &= MAX_EVENTS - 1;
	u64 *n = bpf_map_lookup_elem(&lost, &event);
	if (n)
		++*n;
}

INLINE void count_lost(void) { count_lost_of(event_index); }

INLINE void emit(struct walk *w)
{
	u64 bytes = sizeof(w->header) + 8 * (u64)w->frame_count;
	if (bytes > sizeof(w->header) + sizeof(w->frames))
		return;
	w->header.frame_count = w->frame_count;
	w->header.walk_ns = bpf_ktime_get_ns() - w->header.time;
	if (bpf_ringbuf_output(&samples, &w->header, bytes, BPF_RB_NO_WAKEUP))
		count_lost();
}

// send_label sends the label of the sample's thread, unless it was sent before. It
// overwrites the walk's frames.
INLINE void send_label(struct walk *w)
{
	u64 label = w->tso[(w->layout.tso_label / 8) & (TSO_READ_WORDS - 1)];
	struct thread_key key = {.tso = w->header.tso, .incarnation = w->layout.incarnation};
	if (!label || !key.tso)
		return;
	u64 *sent = bpf_map_lookup_elem(&labels, &key);
	if (sent && *sent == label)
		return;
	bpf_map_update_elem(&labels, &key, &label, 0);
	// StgArrBytes: header, byte count, bytes
	u64 bytes;
	if (READ_USER(&bytes, sizeof(bytes), label + w->layout.header))
		return;
	if (bytes > MAX_LABEL)
		bytes = MAX_LABEL;
	asm volatile("" : "+r"(bytes)); // keeps the mask, which the verifier needs
	bytes &= MAX_LABEL;
	if (READ_USER(w->frames, bytes, label + w->layout.header + 8))
		return;
	w->header.record = RECORD_LABEL;
	w->header.frame_count = bytes;
	bpf_ringbuf_output(&samples, &w->header, sizeof(w->header) + bytes, BPF_RB_NO_WAKEUP);
}

// send_ccs sends a cost-centre stack. If it was sent before, so were those below it, and the
// loop ends. It overwrites the walk's frames.
static long send_ccs(u32 depth, void *context)
{
	struct walk *w = *(struct walk **)context;
	struct ccs_record *r = (struct ccs_record *)w->frames;
	struct ccs_key key = {.ccs = r->prev, .incarnation = w->layout.incarnation};
	u8 sent = 1;
	if (key.ccs == 0 || bpf_map_lookup_elem(&sent_ccs, &key))
		return 1;
	r->ccs = key.ccs;
	read_ccs(r);
	if (depth == MAX_CCS_DEPTH - 1 && r->prev) {
		r->prev = 0;
		r->why = CCS_TOO_DEEP;
	}
	if (!bpf_ringbuf_output(&samples, &w->header, sizeof(w->header) + sizeof(*r), BPF_RB_NO_WAKEUP))
		bpf_map_update_elem(&sent_ccs, &key, &sent, 0);
	return 0;
}

// send_ccs_chain sends the sample's cost-centre stack and those below it, unless they were
// sent before.
INLINE void send_ccs_chain(struct walk *w)
{
	struct ccs_record *r = (struct ccs_record *)w->frames;
	if (!w->header.ccs)
		return;
	r->prev = w->header.ccs;
	w->header.record = RECORD_CCS;
	w->header.frame_count = sizeof(*r) / 8;
	bpf_loop(MAX_CCS_DEPTH, send_ccs, &w, 0);
}

// forked_from gives the process that the current one was forked from, as long as it runs the
// same program. 0 otherwise.
INLINE u32 forked_from(void)
{
	struct task_struct *process = bpf_get_current_task_btf()->group_leader;
	return process->flags & PF_FORKNOEXEC ? process_of(process->real_parent) : 0;
}

// learn_process copies what is known about a process. Until user space has handled its fork,
// that is what is known about its parent.
static NOINLINE int learn_process(struct walk *w)
{
	u32 pid = w->header.pid, epoch = *(volatile u32 *)&w->epoch;
	struct process_layout *layout = bpf_map_lookup_elem(&layouts, &pid);
	w->twin = pid;
	if (!layout) {
		u32 parent = forked_from();
		if (parent && (layout = bpf_map_lookup_elem(&layouts, &parent)))
			w->twin = parent;
	}
	const struct process_regions *regions = FIND_REGIONS(w->twin);
	w->haskell = layout != 0;
	if (layout)
		w->layout = *layout;
	w->regions_version = regions ? regions->version : 0;
	w->tso_info = 0;
	w->running.stack = 0;
	w->pid = pid;
	w->known_in = epoch;
	return 0;
}

// begin_sample prepares a walk for the current process.
INLINE void begin_sample(struct walk *w, u32 cpu)
{
	struct sample_header *h = &w->header;
	begin_walk(w, max_frames);
	h->time = bpf_ktime_get_ns();
	current_ids(h);
	h->cpu = cpu;
	h->event = event_index;
	h->site = SITE_NONE;
	if (UNLIKELY(w->pid != h->pid || w->known_in != w->epoch))
		learn_process(w);
}

// passed_over decides whether to skip an overflow. If so, its weight is kept for the next
// sample; if not, *carry is the weight kept so far. The choice is random, so that it is
// independent of what the program does.
INLINE bool passed_over(struct walk *w, u64 weight, u64 *carry)
{
	if (w->keep == ~0U)
		return false;
	u64 *kept = &w->carried[event_index & (MAX_EVENTS - 1)];
	if (bpf_get_prandom_u32() > w->keep) {
		*kept += weight;
		return true;
	}
	*carry = *kept;
	*kept = 0;
	return false;
}

INLINE struct walk *probe_walk(u32 cpu)
{
	u32 walk = cpus + cpu;
	return bpf_map_lookup_elem(&walks, &walk);
}

#include "transactions.h"

// send_evaluating sends the thunks that the sample's thread evaluates. It overwrites the walk's frames.
INLINE void send_evaluating(struct walk *w)
{
	take_thunks(w->slot);
	u64 bytes = 8 * (u64)w->frame_count;
	if (bytes > 8 * MAX_THUNKS)
		return;
	w->header.record = RECORD_EVALUATING;
	w->header.frame_count = w->frame_count;
	if (bpf_ringbuf_output(&samples, &w->header, sizeof(w->header) + bytes, BPF_RB_NO_WAKEUP))
		count_lost_of(thunk_event);
}

// note_running keeps where the capability is on which a thread was seen running, for the counts of a
// run-time system whose list of them is not known: it may have allocated where no probe was hit.
static NOINLINE int note_running(struct walk *w)
{
	u32 incarnation = w->layout.incarnation;
	struct alloc_account *a = bpf_map_lookup_elem(&alloc_accounts, &incarnation);
	if (a)
		note_capability(a, w->header.capability, w->base);
	return 0;
}

// walk_and_send takes a sample whose unwinding has begun.
INLINE void walk_and_send(struct walk *w)
{
	struct walker k = {.walk = w};
	walk_sample(&k);
	remember_thread(w);
	if (w->haskell)
		w->header.ccs = running_ccs(&k);
	if (with_transactions)
		note_transaction(w);
	if (w->base && w->layout.n_capabilities && !w->layout.capabilities)
		note_running(w);
	emit(w);
	if (thunk_event != NO_EVENT && w->top)
		send_evaluating(w);
	if (w->haskell && w->layout.tso_label)
		send_label(w);
	send_ccs_chain(w);
}

#include "tick.h"

SEC("perf_event")
int on_event(struct perf_event_context *ctx)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct walk *w = bpf_map_lookup_elem(&walks, &cpu);
	if (!w)
		return 0;
	u32 pid = process_of(bpf_get_current_task_btf());
	u64 carry = 0;
	if (only_boosted) {
		if (!is_boosted(pid))
			return 0;
	} else if (!is_target(pid)) {
		count_other(event_index);
		return 0;
	} else if (passed_over(w, ctx->sample_period, &carry)) {
		w->stats.thinned++;
		return 0;
	}
	begin_sample(w, cpu);
	w->stats.samples++;
	w->header.period = ctx->sample_period + carry;
	if (only_boosted)
		w->header.flags |= SAMPLE_BOOSTED;
	if (with_age)
		note_age(w);

	if (REGS_IN_USER(&ctx->regs)) {
		begin_unwind(&w->unwind, &ctx->regs);
	} else {
		w->header.flags |= SAMPLE_IN_KERNEL;
		if (kernel_stacks)
			push_kernel_frames(ctx, w, 0);
		if (!enter_user(w)) {
			w->header.stop = STOP_NO_USER_CONTEXT;
			emit(w);
			return 0;
		}
	}
	walk_and_send(w);
	return 0;
}

#include "alloc_probes.h"

#include "offcpu.h"

struct ticky_walk {
	struct walk *walk;
	u64 next;
};

INLINE void send_ticky(struct ticky_walk *t)
{
	struct walk *w = t->walk;
	u64 bytes = (u64)w->frame_count * 8;
	OPAQUE(bytes);
	bytes &= sizeof(w->frames) - 1;
	if (w->frame_count == MAX_FRAMES)
		bytes = sizeof(w->frames);
	w->header.frame_count = bytes / 8;
	if (bytes && bpf_ringbuf_output(&samples, &w->header, sizeof(w->header) + bytes, BPF_RB_NO_WAKEUP))
		count_lost();
	w->frame_count = 0;
}

static long take_ticky(u32 i, void *context)
{
	struct ticky_walk *t = context;
	struct walk *w = t->walk;
	u32 at = w->frame_count;
	if (!t->next)
		return 1;
	OPAQUE(at);
	struct ticky_record *r = (struct ticky_record *)&w->frames[at & (FRAME_MASK & ~7)];
	t->next = read_ticky(&w->layout, t->next, r);
	w->frame_count += sizeof(*r) / 8;
	if (w->frame_count >= MAX_FRAMES)
		send_ticky(t);
	return 0;
}

// on_shutdown runs when the run-time system of a -ticky program shuts down.
SEC("uprobe")
int on_shutdown(struct regs *ctx)
{
	u32 cpu = bpf_get_smp_processor_id(), walk = cpus + cpu;
	struct walk *w = bpf_map_lookup_elem(&walks, &walk);
	if (!w || w->busy)
		return 0;
	w->busy = 1;
	begin_sample(w, cpu);
	struct ticky_walk t = {.walk = w};
	if (w->haskell && w->layout.ticky_head && !READ_USER(&t.next, sizeof(t.next), w->layout.ticky_head)) {
		w->header.record = RECORD_TICKY;
		bpf_loop(MAX_TICKY, take_ticky, &t, 0);
		send_ticky(&t);
	}
	w->busy = 0;
	return 0;
}

char program_license[] SEC("license") = "Dual BSD/GPL";
