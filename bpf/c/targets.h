// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// The processes whose CPU time is sampled, and the CPU time of their threads. An event is
// opened on CPUs, where it hits all processes; on_event passes over those that are not here.
// User space enters a process, and its children enter themselves as they are forked, so none
// of their time is missed.
#pragma once

#include "sample.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32); // process id in user space's pid namespace
	__type(value, u32); // the part of boosted overflows that is sampled: 0 for none, ~0 for all
} targets SEC(".maps");

// Hits of each event in processes that are not targets.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_EVENTS);
	__type(key, u32);
	__type(value, u64);
} others SEC(".maps");

// ids of a target's thread that has ended: the kernel takes its numbers away before its last
// time is known.
struct ended_thread {
	u32 pid;
	u32 tid;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct ended_thread);
} ended_threads SEC(".maps");

// Set by user space before loading on_event for the event that boosts some of the targets, beside
// the one that all are sampled by.
const volatile u8 only_boosted = 0;

INLINE bool is_target(u32 pid)
{
	return pid && bpf_map_lookup_elem(&targets, &pid);
}

// is_boosted decides whether to sample a boosted process at this overflow. The choice is random, as
// in passed_over.
INLINE bool is_boosted(u32 pid)
{
	u32 *part = pid ? bpf_map_lookup_elem(&targets, &pid) : 0;
	return part && *part && bpf_get_prandom_u32() <= *part;
}

INLINE void count_other(u16 event)
{
	u32 key = event & (MAX_EVENTS - 1);
	u64 *n = bpf_map_lookup_elem(&others, &key);
	if (n)
		++*n;
}

// on_fork enters what a target forks, before it runs.
SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx[0], *child = (struct task_struct *)ctx[1];
	u32 pid, unboosted = 0;
	if (child->tgid == parent->tgid || !is_target(process_of(parent)))
		return 0;
	pid = process_of(child);
	if (pid)
		bpf_map_update_elem(&targets, &pid, &unboosted, 0);
	return 0;
}

INLINE void send_thread_time(u8 record, u32 pid, u32 tid, u64 ns)
{
	struct sample_header h = {
		.time = bpf_ktime_get_ns(), .period = ns, .pid = pid, .tid = tid,
		.capability = NO_CAPABILITY, .record = record,
	};
	bpf_ringbuf_output(&samples, &h, sizeof(h), BPF_RB_NO_WAKEUP);
}

// on_exit runs in a thread that ends. Its time so far lacks what it has used since the
// scheduler last looked, up to a tick.
SEC("tp_btf/sched_process_exit")
int on_exit(u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	u32 pid = process_of(task);
	if (!is_target(pid))
		return 0;
	struct ended_thread *e = bpf_task_storage_get(&ended_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u32 tid = id_of(task);
	if (e) {
		e->pid = pid;
		e->tid = tid;
	}
	send_thread_time(RECORD_THREAD_ENDS, pid, tid, task->se.sum_exec_runtime);
	return 0;
}

// on_free runs when nothing of a thread is left but its counts, which are complete. A process
// whose first thread that is has been waited for.
SEC("tp_btf/sched_process_free")
int on_free(u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct ended_thread *e = bpf_task_storage_get(&ended_threads, task, 0, 0);
	if (!e)
		return 0;
	u32 pid = e->pid;
	send_thread_time(RECORD_THREAD_ENDED, pid, e->tid, task->se.sum_exec_runtime);
	if (pid == e->tid)
		bpf_map_delete_elem(&targets, &pid);
	return 0;
}

// on_thread writes the CPU time of each thread of the targets that there is.
SEC("iter/task")
int on_thread(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	if (!task)
		return 0;
	struct thread_time t = {.pid = process_of(task)};
	if (!is_target(t.pid))
		return 0;
	t.tid = id_of(task);
	t.ns = task->se.sum_exec_runtime;
	bpf_seq_write(ctx->meta->seq, &t, sizeof(t));
	return 0;
}
