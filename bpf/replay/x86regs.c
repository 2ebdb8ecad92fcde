// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
#define __TARGET_ARCH_x86
#define REPLAY_WALK replay_walk_x86
#define REPLAY_REGS REPLAY_X86_REGS
#include "walker.inc"
