// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// Finding the capabilities of a run-time system.
#pragma once

#include "kernel.h"
#include "record.h"

// capability_array gives the address of the array of pointers to capabilities. The variable
// is that array (GHC 9.6) or holds its address (before, and from 9.10 on). In the
// non-threaded way both are one word; then that capability, MainCapability, shows which it
// is: main_capability is its address, and first the variable's first word.
INLINE u64 capability_array(u64 variable, bool in_place, u64 first, u64 main_capability)
{
	return in_place || (first == main_capability && first) ? variable : first;
}

// note_capability keeps where a capability is: a library without its symbol table has no list
// of them.
INLINE void note_capability(struct alloc_account *a, u32 capability, u64 base)
{
	if (capability < ACCOUNT_CAPABILITIES && a->bases[capability & (ACCOUNT_CAPABILITIES - 1)] != base)
		a->bases[capability & (ACCOUNT_CAPABILITIES - 1)] = base;
}
