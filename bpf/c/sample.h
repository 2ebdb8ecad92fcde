// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// How every program that samples begins its record and sends it.
#pragma once

#include "walk_maps.h" // first: it says how the walker reads memory and maps

#include "ids.h"
#include "walk.h"

// Set by user space before loading.
const volatile u32 max_frames = 128;
const volatile u16 event_index = 0;
const volatile u8 kernel_stacks = 0;
const volatile u32 cpus = 1;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22); // set by user space
} samples SEC(".maps");

// Records that did not fit into the ring buffer, by event.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_EVENTS);
	__type(key, u32);
	__type(value, u64);
} lost SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct process_layout);
} layouts SEC(".maps");

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

// enter_user loads the user registers of a thread that is in the kernel. 0 if it has none. One that exits keeps its registers when it has given its
// memory up, which takes long where there is much; nothing of its stacks can be read then.
static NOINLINE int enter_user(struct walk *w)
{
	struct task_struct *task = bpf_get_current_task_btf();
	if (!task->mm)
		return 0;
	long user = bpf_task_pt_regs(task);
	if (bpf_probe_read_kernel(&w->regs, sizeof(w->regs), (const void *)user) || !REGS_IN_USER(&w->regs))
		return 0;
	begin_unwind(&w->unwind, &w->regs);
	return 1;
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
