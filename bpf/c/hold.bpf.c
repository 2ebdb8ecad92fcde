// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// on_hold runs at an instruction where a thread is to be held. It sends the thread a signal
// that is ignored by default: a tracer sees the thread stop with the signal, and without a
// tracer nothing happens.

#include "arch.h"
#include "kernel.h"

static long (*bpf_send_signal_thread)(u32 sig) = (void *)117;

struct hold_state {
	// Set by user space.
	u64 pidns_dev, pidns_ino; // the agent's pid namespace
	u32 signal;
	u32 armed; // hold the next thread that comes; 0 until on_gate allows it
	u32 least; // on_gate: the least first argument that allows it
	// The result.
	u32 tid;    // the thread that was sent the signal
	s32 result; // of sending the signal
	u64 time;   // CLOCK_MONOTONIC
};

const struct hold_state *emit_hold_state __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct hold_state);
} hold SEC(".maps");

SEC("uprobe")
int on_hold(void *ctx)
{
	u32 zero = 0;
	struct bpf_pidns_info me;
	struct hold_state *h = bpf_map_lookup_elem(&hold, &zero);
	if (!h)
		return 0;
	// If two threads arrive at once both are sent the signal; tid is one of them.
	if (!h->armed || h->tid || bpf_get_ns_current_pid_tgid(h->pidns_dev, h->pidns_ino, &me, sizeof(me)))
		return 0;
	h->armed = 0;
	h->tid = me.pid;
	h->time = bpf_ktime_get_ns();
	h->result = bpf_send_signal_thread(h->signal);
	return 0;
}

// on_gate runs at the first instruction of a function that is called before the point is reached.
// Whether a thread may be held there is decided by the last such call's first argument.
SEC("uprobe")
int on_gate(struct regs *ctx)
{
	u32 zero = 0;
	struct hold_state *h = bpf_map_lookup_elem(&hold, &zero);
	if (h)
		h->armed = (u32)REG_ARG1(ctx) >= h->least;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
