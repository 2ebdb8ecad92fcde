// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// The registers of an interrupted thread, and which of them are the STG machine's (GHC's
// calling convention: rts/include/stg/MachRegs in its sources).
#pragma once

#include "kernel.h"

#if defined(__TARGET_ARCH_x86)
#define UNWIND_REGISTERS 16
#else
#define UNWIND_REGISTERS 32
#endif

// unwind is the state of unwinding: the registers of the current frame.
struct unwind {
	u64 pc;
	u64 reg[UNWIND_REGISTERS]; // by DWARF number
};

#if defined(__TARGET_ARCH_x86)

// The order is that of ptrace and of the kernel's own struct pt_regs, which makes it ABI.
struct regs {
	u64 r15, r14, r13, r12, rbp, rbx;
	u64 r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
	u64 orig_rax, rip, cs, eflags, rsp, ss;
};

#define REG_PC(r) ((r)->rip)
#define REG_BASE(r) ((r)->r13)
#define REG_STG_SP(r) ((r)->rbp)
#define REG_STG_R1(r) ((r)->rbx)
#define REG_STG_R2(r) ((r)->r14)
#define REGS_IN_USER(r) (((r)->cs & 3) != 0)
// Whether the last comparison has found equality.
#define REG_ZERO_FLAG(r) (((r)->eflags & (1 << 6)) != 0)

// Arguments of C functions.
#define REG_ARG1(r) ((r)->rdi)
#define REG_ARG2(r) ((r)->rsi)
#define REG_ARG3(r) ((r)->rdx)
#define REG_ARG4(r) ((r)->rcx)
#define REG_ARG5(r) ((r)->r8)
#define REG_ARG6(r) ((r)->r9)
// Where the n-th argument lies, in memory: at the instruction that calls the function, or at its first.
#define STACK_ARG(r, n, at_call) ((r)->rsp + ((at_call) ? 0 : 8) + 8 * ((n) - 7))

// DWARF numbers: System V ABI, AMD64 supplement, figure 3.36.
#define DWARF_C_SP 7
#define DWARF_BASE 13
#define DWARF_STG_SP 6

// begin_unwind loads the registers that unwinding follows, by DWARF number. It copies field
// by field because a program's context can only be read at constant offsets.
INLINE void begin_unwind(struct unwind *u, const struct regs *r)
{
	u->pc = r->rip;
	u->reg[3] = r->rbx;
	u->reg[6] = r->rbp;
	u->reg[7] = r->rsp;
	u->reg[12] = r->r12;
	u->reg[13] = r->r13;
	u->reg[14] = r->r14;
	u->reg[15] = r->r15;
}

// unwind_saved names the registers that unwind_rule.saved describes: the return address,
// then the callee-saved registers.
static const u8 unwind_saved[] = {16, 6, 3, 12, 13, 14, 15};
#define LINK_REGISTER 0
#define CODE_ADDRESS(a) (a)

#elif defined(__TARGET_ARCH_arm64)

// The same as struct user_pt_regs, with which the kernel's struct pt_regs begins.
struct regs {
	u64 x[31];
	u64 sp, pc, pstate;
};

#define REG_PC(r) ((r)->pc)
#define REG_BASE(r) ((r)->x[19])
#define REG_STG_SP(r) ((r)->x[20])
#define REG_STG_R1(r) ((r)->x[22])
#define REG_STG_R2(r) ((r)->x[23])
#define REGS_IN_USER(r) (((r)->pstate & 0xf) == 0)
#define REG_ZERO_FLAG(r) (((r)->pstate & (1 << 30)) != 0)

#define REG_ARG1(r) ((r)->x[0])
#define REG_ARG2(r) ((r)->x[1])
#define REG_ARG3(r) ((r)->x[2])
#define REG_ARG4(r) ((r)->x[3])
#define REG_ARG5(r) ((r)->x[4])
#define REG_ARG6(r) ((r)->x[5])
#define REG_ARG7(r) ((r)->x[6])
#define STACK_ARG(r, n, at_call) ((r)->sp + 8 * ((n) - 9))

// DWARF numbers: DWARF for the Arm 64-bit architecture, 4.1.
#define DWARF_C_SP 31
#define DWARF_BASE 19
#define DWARF_STG_SP 20

INLINE void begin_unwind(struct unwind *u, const struct regs *r)
{
	u->pc = r->pc;
	u->reg[31] = r->sp;
#pragma unroll
	for (int i = 19; i <= 30; i++)
		u->reg[i] = r->x[i];
}

static const u8 unwind_saved[] = {30, 29, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28};
#define LINK_REGISTER 30
// A signed return address has its signature above the address bits.
#define CODE_ADDRESS(a) ((a) & ((1ULL << 48) - 1))

#else
#error "no register map for this architecture"
#endif

// perf_event_context is the context of a perf_event program (struct bpf_perf_event_data).
struct perf_event_context {
	struct regs regs;
	u64 sample_period;
	u64 addr;
};
