// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// The interface of Go to the walker compiled for user space, in two builds: one for each
// register map.
#pragma once

#include "record.h"

// replay_range is a range of recorded memory; its bytes are at an offset in a common blob.
struct replay_range {
	u64 address;
	u64 length;
	u64 offset;
};

struct replay_read {
	u64 address;
	u64 length;
};

struct replay_memory {
	// Either recorded memory, sorted and not overlapping.
	const struct replay_range *ranges;
	u64 range_count;
	const u8 *blob;
	u64 blob_length;
	// Or that of a stopped process.
	s32 pid;
	// The ranges that were read, as far as there is room, and their number.
	struct replay_read *log;
	u64 log_room;
	u64 reads;
	u64 thread_pointer; // where the thread's own variables are; 0 if that is not known
	u64 iterations; // iterations of all loops
};

// replay_tables are the maps of call frame information.
struct replay_tables {
	const struct unwind_row *rows;
	const struct unwind_rule *rules;
	const struct unwind_bucket *buckets;
	u32 row_count, rule_count, bucket_count;
};

struct replay_result {
	struct sample_header header;
	u64 task; // Task that the program would store for the thread
	u64 frames[MAX_FRAMES];
};

#define REPLAY_X86_REGS 21
#define REPLAY_ARM64_REGS 34

// Both functions walk as on_event of sample.bpf.c does for a thread in user space. They
// return 0, or -1 if out of memory.
int replay_walk_x86(struct replay_memory *memory, const struct replay_tables *tables, const u64 *regs,
		    const struct process_layout *layout, const struct process_regions *regions, u64 task,
		    u32 max_frames, struct replay_result *result);
int replay_walk_arm64(struct replay_memory *memory, const struct replay_tables *tables, const u64 *regs,
		      const struct process_layout *layout, const struct process_regions *regions, u64 task,
		      u32 max_frames, struct replay_result *result);

long replay_read_memory(struct replay_memory *memory, void *to, u64 length, u64 address);
