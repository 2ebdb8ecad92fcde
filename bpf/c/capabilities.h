// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// Where a run-time system keeps its capabilities.
#pragma once

#include "kernel.h"

// capability_array gives the address of the array of pointers to capabilities. The
// variable is that array (GHC 9.6) or holds its address (before, and from 9.10 on).
// Where there can be one capability alone both are a word: then that one, whose address
// is that of the RTS's own, tells which word it is. first is what the variable begins
// with.
INLINE u64 capability_array(u64 variable, bool in_place, u64 first, u64 main_capability)
{
	return in_place || (first == main_capability && first) ? variable : first;
}
