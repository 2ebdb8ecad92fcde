// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// Where an interrupted thread's registers lie, and which of them hold the STG
// machine's: GHC's calling convention, rts/include/stg/MachRegs in its sources.
#pragma once

#include "kernel.h"

#if defined(__TARGET_ARCH_x86)

// The order is ptrace's and so ABI; the kernel's own struct pt_regs has it too.
struct regs {
	u64 r15, r14, r13, r12, rbp, rbx;
	u64 r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
	u64 orig_rax, rip, cs, eflags, rsp, ss;
};

#define REG_PC(r) ((r)->rip)
#define REG_C_SP(r) ((r)->rsp)
#define REG_BASE(r) ((r)->r13)
#define REG_STG_SP(r) ((r)->rbp)
#define REGS_IN_USER(r) (((r)->cs & 3) != 0)

// copy_walk_regs copies what a walk needs. Field by field: a program's context
// may only be read at constant offsets.
INLINE void copy_walk_regs(struct regs *to, const struct regs *from)
{
	to->rip = from->rip;
	to->rsp = from->rsp;
	to->rbp = from->rbp;
	to->rbx = from->rbx;
	to->r12 = from->r12;
	to->r13 = from->r13;
	to->r14 = from->r14;
	to->r15 = from->r15;
}

#elif defined(__TARGET_ARCH_arm64)

// struct user_pt_regs; the kernel's struct pt_regs begins with it.
struct regs {
	u64 x[31];
	u64 sp, pc, pstate;
};

#define REG_PC(r) ((r)->pc)
#define REG_C_SP(r) ((r)->sp)
#define REG_BASE(r) ((r)->x[19])
#define REG_STG_SP(r) ((r)->x[20])
#define REGS_IN_USER(r) (((r)->pstate & 0xf) == 0)

INLINE void copy_walk_regs(struct regs *to, const struct regs *from)
{
	to->pc = from->pc;
	to->sp = from->sp;
#pragma unroll
	for (int i = 19; i <= 30; i++)
		to->x[i] = from->x[i];
}

#else
#error "no register map for this architecture"
#endif

// What a perf_event program is called with (struct bpf_perf_event_data).
struct perf_event_context {
	struct regs regs;
	u64 sample_period;
	u64 addr;
};
