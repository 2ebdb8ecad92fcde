// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// What a walk works on, and its limits.
#pragma once

#include "arch.h"
#include "ghc.h"
#include "record.h"

// Bytes of a register table that are read at once: rCurrentTSO through the running task.
#define BASE_READ_LEN (BASE_RUNNING_TASK + 8 - BASE_CURRENT_TSO)

// The part of the stack read at once. Most stacks fit; a read costs more than
// a hundred nanoseconds whatever its length.
#define WINDOW_WORDS 256
#define WINDOW_MASK (WINDOW_WORDS - 1)
// The first read is smaller: it is enough for a shallow stack.
#define FIRST_WINDOW_WORDS 32
// Words of a frame that the walker looks at itself.
#define FRAME_HEAD 3

// How far above Sp the topmost return frame is looked for when Sp is not at one.
#define TOP_SCAN_WORDS 32

// Stack chunks followed; a chunk holds 32 KiB by default, so this is 64 MiB. Each costs
// two reads of memory that nothing else has touched.
#define MAX_CHUNKS 2048

// A frame larger than this is taken for garbage: RET_FUN and RET_BCO frames
// carry their size in the target's memory.
#define MAX_FRAME_WORDS (1 << 20)

// A deep stack is mostly recursion: the same few frames over and over. The
// first two copies of a cycle of at most this many frames are recorded, then a
// FRAME_FOLDED, and further copies are left out.
#define MAX_CYCLE 32

// What is remembered of an info table. Four share a cache line: info tables that
// lie near each other do.
struct cached_info {
	u64 tag;   // info_tag, 0 = unused
	u16 words; // frame size; 0 = depends on the frame
	u8 type;   // closure type
	u8 kind;   // enum frame_kind, or NO_FRAME
	u16 walk;  // in which it was last recorded, and where
	u16 position;
};

#define INFO_CACHE_ENTRIES 4096
#define NO_FRAME 0xff

// Code with an info table is aligned to four bytes at least (arm64; elsewhere to eight),
// and user addresses have 48 bits: there is room for a program image's generation.
#define INFO_ADDRESS(info) (((info) >> 48) == 0 && ((info) & 3) == 0)
#define GENERATION_MASK ((1 << 18) - 1)
#define info_tag(info, generation) ((info) << 16 | ((generation) & GENERATION_MASK))
// 128 bytes of code share a cache line.
#define info_slot(info) (((u32)((info) >> 5) ^ (u32)((info) >> 17)) & (INFO_CACHE_ENTRIES - 1))

// The rule that was found for a code address. It has a cache line.
struct cached_rule {
	u64 pc;
	u32 version;		 // of process_regions; 0 = none were known
	struct unwind_rule rule; // UNWIND_NONE: there is none
} __attribute__((aligned(64)));

#define RULE_CACHE_ENTRIES 512
#define rule_slot(pc) (((u32)(pc) ^ (u32)((pc) >> 9) ^ (u32)((pc) >> 18)) & (RULE_CACHE_ENTRIES - 1))

// The region that the code around an address is in.
struct known_region {
	struct unwind_region region;
	u64 version; // of process_regions; 0 = unused
};

#define KNOWN_REGIONS 4
#define known_region_slot(pc) ((u32)((pc) >> 21) & (KNOWN_REGIONS - 1))

// The last that was noted in the threads map of some OS threads.
struct noted_thread {
	u64 task;
	u32 tid;
	u32 generation;
};

#define NOTED_THREADS 4

// The stack chunk that a running thread was on last.
struct running_chunk {
	u64 stack; // address of the StgStack, 0 = none
	u64 tso;   // the thread's id
	u64 lo, hi;
};

// Words of a TSO that are read, at most.
#define TSO_READ_WORDS 16

// Words below the CFA where callees save registers, and words of the C stack that are
// read at once from there on: the next callers' are there too.
#define SAVE_AREA_WORDS 8
#define C_WINDOW_WORDS 64
// A divisor of the size of pages, everywhere.
#define PAGE_BYTES 4096

// What a walk works on, one for each CPU. Most of a sample's time goes into fetching
// memory that the program has displaced from the caches since the sample before. So
// all of it is in one place, what every walk needs first and together.
struct walk {
	u64 sp;
	u64 window_at;	  // address of window[0]
	u32 window_words; // how many are valid
	u32 window_limit; // bytes to read next
	u64 chunk_lo;
	u64 chunk_hi;
	u64 walk_until; // frames from here on are not walked
	u32 frame_count;
	u32 max_frames;
	u32 frames_left; // to be walked, folded ones included

	// Folding: the cycle's length (0 = none is being folded), the place in
	// it that comes next, the whole copies left out; and how many frames in
	// a row were each seen last the same number of frames (the lag) before.
	u32 cycle;
	u32 phase;
	u32 folded_copies;
	u32 lag;
	u32 run;
	u32 folding;
	u8 cycle_words[MAX_CYCLE] __attribute__((aligned(8))); // sizes of its frames, 0 = not known
	u32 number;	// of this walk on this CPU
	u32 found;	// find_frame's result
	u32 outcome;	// enum unwind_outcome
	u32 after_call; // 1 if unwind.pc is a return address
	u32 busy;	// a walk that can be interrupted is using this
	u64 base;	// BaseReg of the Haskell code, 0 if it could not be had
	u64 waiting;	// the thread object that waits for a safe foreign call, 0 if none does
	u64 entered; // the thunk whose code wanted to allocate first of all, 0 if it was none
	u64 task;	// the Task that runs the Haskell code, 0 if none does

	struct walk_stats stats;
	// Counts the changes of layouts and regions; set by user space.
	u32 epoch;
	// An overflow is sampled if a random number is not above this; set by user space.
	u32 keep;

	// Of the process that was sampled last, until the next change.
	u32 known_in; // epoch
	u32 pid;
	u32 twin; // whose layout and regions hold: its own, or its parent's that it was forked from
	u32 haskell;	     // 1 if layout is valid
	u32 regions_version; // 0 without call frame information
	u64 tso_info;	     // info pointer of its thread objects, 0 if none was seen
	struct running_chunk running;
	struct process_layout layout;

	struct unwind unwind;
	struct noted_thread noted[NOTED_THREADS];
	struct known_region regions[KNOWN_REGIONS];

	// The record.
	struct sample_header header;
	u64 frames[MAX_FRAMES];

	u64 window[WINDOW_WORDS];
	u64 tso[TSO_READ_WORDS];
	struct regs regs; // of a thread that is in the kernel
	// The weight of each event's samples that were not taken, for the next that is.
	u64 carried[MAX_EVENTS];
	struct cached_rule rules[RULE_CACHE_ENTRIES];
	struct cached_info infos[INFO_CACHE_ENTRIES];
} __attribute__((aligned(64)));

// What the loops' callbacks are given.
struct walker {
	struct walk *walk;
};

#define FRAME_MASK (MAX_FRAMES - 1)

// frame_at gives the place of a recorded frame, for any index.
INLINE u64 *frame_at(struct walk *w, u32 i)
{
	OPAQUE(i);
	return &w->frames[i & FRAME_MASK];
}

INLINE void push_frame(struct walk *w, u32 kind, u64 address)
{
	u32 n = w->frame_count;
	if (n >= MAX_FRAMES)
		return;
	*frame_at(w, n) = (address & FRAME_ADDRESS_MASK) | ((u64)kind << FRAME_KIND_SHIFT);
	w->frame_count = n + 1;
}
