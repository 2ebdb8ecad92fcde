// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// The walker compiled for user space: what Go and the two builds of it (one for
// each register map) share.
#pragma once

#include "record.h"

// A stretch of recorded memory; its bytes are at an offset into one blob.
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
	// Either recorded memory, sorted and not overlapping…
	const struct replay_range *ranges;
	u64 range_count;
	const u8 *blob;
	u64 blob_length;
	// … or that of a stopped process.
	s32 pid;
	// What was read, as far as there is room, and how much there was.
	struct replay_read *log;
	u64 log_room;
	u64 reads;
	u64 iterations; // of all loops
};

// The maps of call frame information.
struct replay_tables {
	const struct unwind_row *rows;
	const struct unwind_rule *rules;
	const struct unwind_bucket *buckets;
	u32 row_count, rule_count, bucket_count;
};

struct replay_result {
	struct sample_header header;
	u64 task; // the RTS's Task that the program would remember for the thread
	u64 frames[MAX_FRAMES];
};

#define REPLAY_X86_REGS 21
#define REPLAY_ARM64_REGS 34

// Both walk as on_event of sample.bpf.c does for a thread in user space. 0, or -1
// without memory.
int replay_walk_x86(struct replay_memory *memory, const struct replay_tables *tables, const u64 *regs,
		    const struct process_layout *layout, const struct process_regions *regions, u64 task,
		    u32 max_frames, struct replay_result *result);
int replay_walk_arm64(struct replay_memory *memory, const struct replay_tables *tables, const u64 *regs,
		      const struct process_layout *layout, const struct process_regions *regions, u64 task,
		      u32 max_frames, struct replay_result *result);

long replay_read_memory(struct replay_memory *memory, void *to, u64 length, u64 address);
