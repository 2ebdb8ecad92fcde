// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// What the probe at the beginning of collections sends to user space.
#pragma once

#include "record.h"

#define RECORD_BLOCK 17

// nursery_layout is what the probe needs to know about a process.
struct nursery_layout {
	// Addresses of the RTS's variables; 0 if not known.
	u64 capabilities, n_capabilities, main_capability;
	u32 incarnation;
	// One in 2^32 / (chance + 1) collections has a block copied.
	u32 chance;
	u16 total_allocated; // Capability.total_allocated, from BaseReg
	u16 capabilities_in_place; // capabilities is the array itself, not a pointer to it
	u32 padding;
};

#define BLOCK_WORDS 512

// block_record is a RECORD_BLOCK: what a block of the nursery held when a collection began.
// The header's capability is whose it was, and total is what that had allocated, in words.
struct block_record {
	struct sample_header header;
	u64 start;   // the block's address
	u64 used;    // bytes that are allocated in it; more than the record has for a group of blocks
	u64 nursery; // blocks of the capability's nursery
	u64 capabilities;
	u64 words[BLOCK_WORDS];
};

// nursery_counts are the counts of one CPU.
struct nursery_counts {
	u64 hits;    // collections
	u64 chosen;  // of those, at which a block was to be copied
	u64 missed;  // of those, that had none at the chosen place: the nursery was not full
	u64 dropped; // of those, whose record did not fit into the ring buffer
	u64 failed;  // of those, whose nursery could not be read
};
