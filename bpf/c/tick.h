// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// Samples of CPU time at the kernel's tick. Its interrupt comes anyway, and only where a CPU is
// not idle, so what a sample costs is its walk. It interrupts the programs at probes and at
// switches of threads, so user space loads on_tick with walks of its own.
#pragma once

#include "take.h"
#include "targets.h"

// Distances from a CPU's struct hrtimer_cpu_base, which is a per-CPU variable, to others: the
// timer of the tick, and the pointer to the registers that the interrupt found. Set by user
// space before loading, as are the next two.
const volatile s64 tick_timer = 0;
const volatile s64 tick_regs = 0;
const volatile u64 tick_ns = 0; // from one tick to the next
// One tick in so many is sampled, drawn at random: every n-th would be in step with more.
const volatile u32 tick_share = 1;

// Set by user space for the event beside the tick.
const volatile u8 with_age = 0;

// What the scheduler's clock is behind the other, as of the last tick.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} behind SEC(".maps");

INLINE u64 *clock_behind(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&behind, &zero);
}

// note_age notes for how long the thread has run since it was switched to, and how often it has
// slept: where threads that have slept are always as old at ticks, they are in step with it. The
// scheduler's sum is as of exec_start.
INLINE void note_age(struct walk *w)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 *by = clock_behind();
	u64 age = task->se.sum_exec_runtime - task->se.prev_sum_exec_runtime;
	u64 since = by ? w->header.time - *by - task->se.exec_start : 0;
	if ((s64)since > 0 && since < 1000000000)
		age += since;
	w->header.total = age;
	w->header.large = task->nvcsw;
}

// interrupted_at loads the registers that the interrupt found, and gives the address in the
// kernel, 0 if it was in user space.
static NOINLINE u64 interrupted_at(struct walk *w, u64 base)
{
	u64 at;
	if (bpf_probe_read_kernel(&at, sizeof(at), (const void *)(base + tick_regs)) || !at ||
	    bpf_probe_read_kernel(&w->regs, sizeof(w->regs), (const void *)at) || REGS_IN_USER(&w->regs))
		return 0;
	return REG_PC(&w->regs);
}

// on_tick runs when any timer of the kernel's has run: after the tick has, so that the CPU time
// of the thread is as of now.
SEC("tp_btf/hrtimer_expire_exit")
int on_tick(u64 *ctx)
{
	struct hrtimer *timer = (struct hrtimer *)ctx[0];
	u64 base = (u64)timer->base->cpu_base;
	if ((s64)((u64)timer - base) != tick_timer)
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	u64 *by = clock_behind();
	if (by && task->pid)
		*by = bpf_ktime_get_ns() - task->se.exec_start;
	if (!is_target(process_of(task)))
		return 0;
	if (tick_share > 1 && bpf_get_prandom_u32() % tick_share)
		return 0;
	u32 cpu = bpf_get_smp_processor_id();
	struct walk *w = bpf_map_lookup_elem(&walks, &cpu);
	u64 none;
	if (!w)
		return 0;
	if (passed_over(w, 0, &none)) {
		w->stats.thinned++;
		return 0;
	}
	begin_sample(w, cpu);
	w->stats.samples++;
	w->header.period = tick_ns;
	w->header.flags |= SAMPLE_ON_TICK;
	note_age(w);
	u64 pc = interrupted_at(w, base);
	if (pc) {
		w->header.flags |= SAMPLE_IN_KERNEL;
		if (kernel_stacks)
			push_kernel_frames(ctx, w, pc);
	}
	if (!enter_user(w)) {
		w->header.stop = STOP_NO_USER_CONTEXT;
		emit(w);
		return 0;
	}
	walk_and_send(w);
	return 0;
}
