// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// on_task writes, of each thread of a process, the registers that it has in user space, and what shows later whether it has run
// since. The registers are those of a thread that is on no CPU: the kernel has put them away.

#include "arch.h"
#include "ids.h"
#include "kernel.h"

// What is needed of the kernel's types beside kernel.h; CO-RE takes no notice of what follows three underscores.
#if defined(__TARGET_ARCH_x86)
struct thread_struct___registers {
	unsigned long fsbase;
} __attribute__((preserve_access_index));
#else
struct pt_regs___registers {
	s32 syscallno;
} __attribute__((preserve_access_index));
#endif

struct task_struct___registers {
	s32 on_cpu;
	unsigned long nvcsw, nivcsw;
#if defined(__TARGET_ARCH_x86)
	struct thread_struct___registers thread;
#endif
} __attribute__((preserve_access_index));

struct thread_registers {
	u32 tid;
	u32 on_cpu;
	u64 switches; // how often it has left a CPU
	u64 pointer;  // to what belongs to the thread, where the kernel keeps it
	s64 call;     // the number of the system call that it is in; negative if it is in none
	struct regs regs;
};

const struct thread_registers *emit_thread_registers __attribute__((unused));

// The process. Set by user space before loading.
const volatile u32 process = 0;

SEC("iter/task")
int on_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	if (!task || process_of(task) != process)
		return 0;
	struct task_struct___registers *more = (void *)task;
	struct thread_registers t = {.tid = id_of(task), .on_cpu = more->on_cpu};
	t.switches = more->nvcsw + more->nivcsw;
	void *user = (void *)bpf_task_pt_regs(task);
	if (bpf_probe_read_kernel(&t.regs, sizeof(t.regs), user))
		return 0;
#if defined(__TARGET_ARCH_x86)
	t.pointer = more->thread.fsbase;
	t.call = (s64)t.regs.orig_rax;
#else
	s32 call = -1;
	bpf_probe_read_kernel(&call, sizeof(call), &((struct pt_regs___registers *)user)->syscallno);
	t.call = call;
#endif
	bpf_seq_write(ctx->meta->seq, &t, sizeof(t));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
