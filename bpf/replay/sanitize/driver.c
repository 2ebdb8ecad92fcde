// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// The driver walks the targets on standard input, one after the other, and writes the
// records to standard output. The test compiles it with sanitizers: each part of a target is
// allocated separately, so that a read beyond its end is detected.
//
// A target is nine blocks, each a length of eight bytes followed by that many bytes: the
// numbers below; registers, layout, regions, rows, rules, buckets, ranges and the blob that
// they refer to.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "walker.h"

struct numbers {
	u64 arm64;
	u64 max_frames;
	u64 task;
	u64 thread_pointer;
};

struct block {
	void *bytes;
	u64 length;
};

// read_block returns 0 at the end of the input.
static int read_block(struct block *b)
{
	if (fread(&b->length, sizeof(b->length), 1, stdin) != 1)
		return 0;
	b->bytes = malloc(b->length);
	if (b->length > 0 && (!b->bytes || fread(b->bytes, b->length, 1, stdin) != 1)) {
		fprintf(stderr, "driver: truncated input\n");
		exit(2);
	}
	return 1;
}

int main(void)
{
	for (;;) {
		struct block blocks[9];
		for (int i = 0; i < 9; i++) {
			if (!read_block(&blocks[i]))
				return i == 0 ? 0 : 2;
		}
		const struct numbers *n = blocks[0].bytes;
		struct replay_tables tables = {
			.rows = blocks[4].bytes,
			.rules = blocks[5].bytes,
			.buckets = blocks[6].bytes,
			.row_count = blocks[4].length / sizeof(struct unwind_row),
			.rule_count = blocks[5].length / sizeof(struct unwind_rule),
			.bucket_count = blocks[6].length / sizeof(struct unwind_bucket),
		};
		struct replay_memory memory = {
			.ranges = blocks[7].bytes,
			.range_count = blocks[7].length / sizeof(struct replay_range),
			.blob = blocks[8].bytes,
			.blob_length = blocks[8].length,
			.thread_pointer = n->thread_pointer,
		};
		struct replay_result *result = calloc(1, sizeof(*result));
		int (*walk)(struct replay_memory *, const struct replay_tables *, const u64 *,
			    const struct process_layout *, const struct process_regions *, u64, u32,
			    struct replay_result *) = n->arm64 ? replay_walk_arm64 : replay_walk_x86;
		if (!result || walk(&memory, &tables, blocks[1].bytes, blocks[2].bytes, blocks[3].bytes, n->task,
				    n->max_frames, result))
			return 2;
		u64 frames = result->header.frame_count;
		fwrite(&result->header, sizeof(result->header), 1, stdout);
		fwrite(result->frames, sizeof(u64), frames, stdout);
		free(result);
		for (int i = 0; i < 9; i++)
			free(blocks[i].bytes);
	}
}
