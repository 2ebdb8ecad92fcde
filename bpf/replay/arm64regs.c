// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
#define __TARGET_ARCH_arm64
#define REPLAY_WALK replay_walk_arm64
#define REPLAY_REGS REPLAY_ARM64_REGS
#include "walker.inc"
