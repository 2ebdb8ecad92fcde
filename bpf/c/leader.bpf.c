// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// These programs find the thread that leads a major collection, and have it held where the
// collection ends: on_collect reports it when the collection begins, so that user space can trace
// it, and on_collected sends it a signal that is ignored by default, if user space says that it
// does. The tracer sees the thread stop with the signal; without one nothing happens.

#include "arch.h"
#include "ids.h"
#include "kernel.h"

static long (*bpf_send_signal_thread)(u32 sig) = (void *)117;

// What user space wants of a process. It alone writes it.
struct leader_wish {
	u64 due;   // from this time (CLOCK_MONOTONIC) on, a major collection is to be reported, once
	u64 armed; // the major collection, by its number, whose leader is traced
	u32 least; // GarbageCollect's first argument in a major collection, at the least
	u32 signal;
};

// What was seen of a process. The programs alone write it, one collection at a time.
struct leader_state {
	u64 collections, majors; // that have begun
	u64 reported;            // the wish's due for which a collection was reported
	u64 major;               // the number of the collection that is under way, 0 if it is none
	u64 passed;              // the number of the last one that has ended
	u64 held;                // the number of the last one whose leader was sent the signal
	u64 time;                // when that was, CLOCK_MONOTONIC
	s64 result;              // of sending the signal
};

// A major collection begins.
struct leader_record {
	u64 major; // its number
	u32 pid, tid;
};

const struct leader_record *emit_leader_record __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} leaders SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, struct leader_wish);
} wishes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, struct leader_state);
} states SEC(".maps");

SEC("uprobe")
int on_collect(struct regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct leader_record r = {.pid = process_of(task), .tid = id_of(task)};
	const struct leader_wish *wish = bpf_map_lookup_elem(&wishes, &r.pid);
	struct leader_state *state = bpf_map_lookup_elem(&states, &r.pid);
	if (!wish || !state)
		return 0;
	state->collections++;
	state->major = 0;
	if ((u32)REG_ARG1(ctx) < wish->least)
		return 0;
	state->major = ++state->majors;
	if (state->reported == wish->due || bpf_ktime_get_ns() < wish->due)
		return 0;
	state->reported = wish->due;
	r.major = state->major;
	bpf_ringbuf_output(&leaders, &r, sizeof(r), 0);
	return 0;
}

SEC("uprobe")
int on_collected(struct regs *ctx)
{
	u32 pid = process_of(bpf_get_current_task_btf());
	const struct leader_wish *wish = bpf_map_lookup_elem(&wishes, &pid);
	struct leader_state *state = bpf_map_lookup_elem(&states, &pid);
	if (!wish || !state || !state->major)
		return 0;
	if (wish->armed == state->major && state->held != state->major) {
		state->time = bpf_ktime_get_ns();
		state->held = state->major;
		state->result = bpf_send_signal_thread(wish->signal);
	}
	state->passed = state->major;
	return 0;
}

char program_license[] SEC("license") = "Dual BSD/GPL";
