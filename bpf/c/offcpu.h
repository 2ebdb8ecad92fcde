// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// on_switch runs when a CPU switches from one thread to another. When a thread of the target
// goes to sleep, its stack is sent; when it runs again, the time that it was off the CPU.
#pragma once

#include "take.h"
#include "targets.h"

// include/linux/sched.h: sleeping states, not stopped, traced or dead.
#define TASK_INTERRUPTIBLE 1
#define TASK_UNINTERRUPTIBLE 2

// wait is the state of a thread's wait.
struct wait {
	u64 since; // ns, 0 while it runs
	u64 carry; // ns of waits whose stacks were not sent; added to the next that is
	u32 pid;
	u32 tid;
	u32 sent; // 1 if its stack was sent
	u32 padding;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u32); // thread id in the initial pid namespace
	__type(value, struct wait);
} waits SEC(".maps");

struct wait_rate {
	u64 interval; // number of the current interval, and the stacks sent in it
	u64 sent;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wait_rate);
} wait_rates SEC(".maps");

// Rate limit: a CPU walks at most WAIT_INTERVAL_STACKS stacks of waits per interval of 2^23
// ns, which is about 1900 a second.
#define WAIT_INTERVAL_SHIFT 23
#define WAIT_INTERVAL_STACKS 16

INLINE void end_wait(u32 task)
{
	struct wait *wait = bpf_map_lookup_elem(&waits, &task);
	if (!wait || !wait->since)
		return;
	u64 time = bpf_ktime_get_ns();
	u64 off = time - wait->since;
	wait->since = 0;
	if (!wait->sent) {
		wait->carry += off;
		return;
	}
	struct sample_header h = {
		.time = time, .period = off + wait->carry, .pid = wait->pid, .tid = wait->tid,
		.event = event_index, .capability = NO_CAPABILITY, .record = RECORD_WAKE,
	};
	wait->sent = 0;
	if (!bpf_ringbuf_output(&samples, &h, sizeof(h), BPF_RB_NO_WAKEUP))
		wait->carry = 0;
}

INLINE bool stack_is_wanted(u64 time)
{
	u32 zero = 0;
	struct wait_rate *r = bpf_map_lookup_elem(&wait_rates, &zero);
	if (!r)
		return false;
	u64 interval = time >> WAIT_INTERVAL_SHIFT;
	if (r->interval != interval) {
		r->interval = interval;
		r->sent = 0;
	}
	return ++r->sent <= WAIT_INTERVAL_STACKS;
}

INLINE void begin_wait(u64 *ctx, u32 task)
{
	u32 cpu = bpf_get_smp_processor_id(), walk = 2 * cpus + cpu;
	struct walk *w = bpf_map_lookup_elem(&walks, &walk);
	if (!w)
		return;
	current_ids(&w->header);
	u32 pid = w->header.pid;
	if (!FIND_REGIONS(pid))
		return;
	u64 since = bpf_ktime_get_ns();
	bool send = stack_is_wanted(since);
	// A thread that has waited before has its place already, and nobody else changes it: two switches of a thread do not
	// happen at once.
	struct wait *wait = bpf_map_lookup_elem(&waits, &task);
	if (wait && wait->pid == pid) {
		wait->since = since;
		wait->sent = send;
	} else {
		struct wait fresh = {.since = since, .pid = pid, .tid = w->header.tid, .sent = send};
		bpf_map_update_elem(&waits, &task, &fresh, 0);
	}
	if (send) {
		begin_sample(w, cpu);
		w->stats.samples++;
		w->header.period = 0;
		w->header.flags |= SAMPLE_IN_KERNEL;
		w->header.record = RECORD_WAIT;
		if (kernel_stacks)
			push_kernel_frames(ctx, w, 0);
		if (enter_user(w)) {
			struct walker k = {.walk = w};
			walk_sample(&k);
			remember_thread(w);
		} else {
			w->header.stop = STOP_NO_USER_CONTEXT;
		}
		emit(w);
	}
	w->stats.waits++;
	w->stats.wait_ns += bpf_ktime_get_ns() - since;
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1], *next = (struct task_struct *)ctx[2];
	bool preempted = ctx[0] & 1;
	end_wait(next->pid);
	if (!preempted && prev->__state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE))
		begin_wait(ctx, prev->pid);
	return 0;
}
