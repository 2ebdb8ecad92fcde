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
	u64 ran;   // CPU time of the thread when it went to sleep, ns: it has not run since if that is the same
	u64 unsent; // ns of waits whose stacks were not sent, since the last that was
	u64 sent_in; // the interval in which a stack of the thread was sent last
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

// Rate limit: per interval of 2^23 ns a CPU walks WAIT_INTERVAL_STACKS stacks of waits, about 1900 a second, and beyond these one of each
// thread, so that one which waits rarely is not left out since others wait often; WAIT_INTERVAL_MOST at the most.
#define WAIT_INTERVAL_SHIFT 23
#define WAIT_INTERVAL_STACKS 16
#define WAIT_INTERVAL_MOST 64

// end_wait ends the wait of a thread that is to run. If it has run since the wait began, while switches were not traced, what lies
// between is not known to be a wait.
INLINE void end_wait(struct task_struct *next)
{
	u32 task = next->pid;
	struct wait *wait = bpf_map_lookup_elem(&waits, &task);
	if (!wait || !wait->since)
		return;
	u64 time = bpf_ktime_get_ns();
	u64 off = time - wait->since;
	wait->since = 0;
	if (next->se.sum_exec_runtime != wait->ran)
		return;
	if (!wait->sent) {
		wait->unsent += off;
		return;
	}
	struct sample_header h = {
		.time = time, .period = off, .pid = wait->pid, .tid = wait->tid,
		.event = event_index, .capability = NO_CAPABILITY, .record = RECORD_WAKE,
	};
	wait->sent = 0;
	bpf_ringbuf_output(&samples, &h, sizeof(h), BPF_RB_NO_WAKEUP);
}

// stack_is_wanted decides whether the stack of a thread is sent whose last one was in an interval.
INLINE bool stack_is_wanted(u64 interval, u64 last)
{
	u32 zero = 0;
	struct wait_rate *r = bpf_map_lookup_elem(&wait_rates, &zero);
	if (!r)
		return false;
	if (r->interval != interval) {
		r->interval = interval;
		r->sent = 0;
	}
	if (r->sent >= WAIT_INTERVAL_STACKS && (r->sent >= WAIT_INTERVAL_MOST || last == interval))
		return false;
	r->sent++;
	return true;
}

INLINE void begin_wait(u64 *ctx, struct task_struct *prev)
{
	u32 cpu = bpf_get_smp_processor_id(), walk = 2 * cpus + cpu, task = prev->pid;
	struct walk *w = bpf_map_lookup_elem(&walks, &walk);
	if (!w)
		return;
	current_ids(&w->header);
	u32 pid = w->header.pid;
	if (!FIND_REGIONS(pid))
		return;
	u64 since = bpf_ktime_get_ns(), interval = since >> WAIT_INTERVAL_SHIFT, ran = prev->se.sum_exec_runtime, unsent = 0;
	// A thread that has waited before has its place already, and nobody else changes it: two switches of a thread do not
	// happen at once.
	struct wait *wait = bpf_map_lookup_elem(&waits, &task);
	bool known = wait && wait->pid == pid;
	bool send = stack_is_wanted(interval, known ? wait->sent_in : 0);
	if (known) {
		wait->since = since;
		wait->ran = ran;
		wait->sent = send;
		if (send) {
			unsent = wait->unsent;
			wait->unsent = 0;
			wait->sent_in = interval;
		}
	} else {
		struct wait fresh = {.since = since, .ran = ran, .pid = pid, .tid = w->header.tid, .sent = send, .sent_in = send ? interval : 0};
		bpf_map_update_elem(&waits, &task, &fresh, 0);
	}
	if (send) {
		begin_sample(w, cpu);
		w->stats.samples++;
		w->header.period = unsent;
		w->header.total = ran;
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
	end_wait(next);
	if (!preempted && prev->__state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE))
		begin_wait(ctx, prev);
	return 0;
}
