// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// The state of a walk, and its limits.
#pragma once

#include "arch.h"
#include "ghc.h"
#include "record.h"

// Bytes of a register table read at once: rCurrentTSO through the running task.
#define BASE_READ_LEN (BASE_RUNNING_TASK + 8 - BASE_CURRENT_TSO)

// Words of the stack read at once. Most stacks fit; a read costs more than a hundred
// nanoseconds whatever its length.
#define WINDOW_WORDS 256
#define WINDOW_MASK (WINDOW_WORDS - 1)
// The first read is smaller: it suffices for a shallow stack.
#define FIRST_WINDOW_WORDS 32
// Words of a frame that the walker itself looks at.
#define FRAME_HEAD 3

// Words above Sp that are searched for the topmost return frame if Sp is not at one.
#define TOP_SCAN_WORDS 32

// Maximum number of stack chunks followed. A chunk has 32 KiB by default, so this is 64 MiB.
// Each costs two reads of memory that is in no cache.
#define MAX_CHUNKS 2048

// Maximum size of a frame. Larger sizes are garbage: RET_FUN and RET_BCO frames have their
// size in the target's memory.
#define MAX_FRAME_WORDS (1 << 20)

// Maximum length of a cycle that is folded. A deep stack is mostly recursion: the same few
// frames over and over. The first two copies of a cycle are recorded, then a FRAME_FOLDED,
// and further copies are left out.
#define MAX_CYCLE 32

// cached_info is a cached info table. Four share a cache line, those of info tables near
// each other.
struct cached_info {
	u64 tag;   // info_tag, 0 = unused
	u16 words; // frame size; 0 = depends on the frame
	u8 type;   // closure type
	u8 kind;   // enum frame_kind, or NO_FRAME
	u16 walk;  // number of the walk that recorded it last, and the index there
	u16 position;
};

#define INFO_CACHE_ENTRIES 4096
#define NO_FRAME 0xff

// Code with an info table is aligned to at least four bytes (arm64; elsewhere eight), and
// user addresses have 48 bits, so a tag has room for the incarnation.
#define INFO_ADDRESS(info) (((info) >> 48) == 0 && ((info) & 3) == 0)
#define INCARNATION_MASK ((1 << 18) - 1)
#define info_tag(info, incarnation) ((info) << 16 | ((incarnation) & INCARNATION_MASK))
// 128 bytes of code share a cache line of the table.
#define info_slot(info) (((u32)((info) >> 5) ^ (u32)((info) >> 17)) & (INFO_CACHE_ENTRIES - 1))

// cached_rule is the rule found for a code address. It fills a cache line.
struct cached_rule {
	u64 pc;
	u32 version;		 // of process_regions; 0 = there were none
	struct unwind_rule rule; // UNWIND_NONE: there is none
} __attribute__((aligned(64)));

#define RULE_CACHE_ENTRIES 512
#define rule_slot(pc) (((u32)(pc) ^ (u32)((pc) >> 9) ^ (u32)((pc) >> 18)) & (RULE_CACHE_ENTRIES - 1))

// known_region is the region that contains the code around an address.
struct known_region {
	struct unwind_region region;
	u64 version; // of process_regions; 0 = unused
};

#define KNOWN_REGIONS 4
#define known_region_slot(pc) ((u32)((pc) >> 21) & (KNOWN_REGIONS - 1))

// noted_thread is what was last stored in the threads map for some OS thread.
struct noted_thread {
	u64 task;
	u32 tid;
	u32 incarnation;
};

#define NOTED_THREADS 4

// running_chunk is the stack chunk that a running thread used last.
struct running_chunk {
	u64 stack; // address of the StgStack, 0 = none
	u64 tso;   // the thread's id
	u64 lo, hi;
};

// Maximum number of words read of a TSO.
#define TSO_READ_WORDS 16

// Words below the CFA where callees save registers, and words of the C stack read at once
// from there on, to include the next callers'.
#define SAVE_AREA_WORDS 8
#define C_WINDOW_WORDS 64
// A divisor of every machine's page size.
#define PAGE_BYTES 4096

// walk is the working memory of a walk, one for each CPU. Most of a sample's time is spent
// on cache misses, because the program has used the caches since the previous sample. So
// everything is in one place, and what every walk needs is first and together.
struct walk {
	u64 sp;
	u64 window_at;	  // address of window[0]
	u32 window_words; // how many are valid
	u32 window_limit; // bytes to read next
	u64 chunk_lo;
	u64 chunk_hi;
	u64 walk_until; // address at which the walk stops
	u32 frame_count;
	u32 max_frames;
	u32 frames_left; // budget of frames to walk, folded ones included

	// Folding: the cycle's length (0 = not folding), the index in it that comes next, and
	// the whole copies left out; and the lag of the newest frame (see lag_of) with the
	// number of frames in a row that have it.
	u32 cycle;
	u32 phase;
	u32 folded_copies;
	u32 lag;
	u32 run;
	u32 folding;
	u8 cycle_words[MAX_CYCLE] __attribute__((aligned(8))); // sizes of the cycle's frames, 0 = not known
	u32 number;	// number of this walk on this CPU
	u32 found;	// find_frame's result
	u32 outcome;	// enum unwind_outcome
	u32 after_call; // 1 if unwind.pc is a return address
	u32 busy;	// a walk that can be interrupted is using this
	u64 base;	// BaseReg of the Haskell code, 0 if not known
	u64 waiting;	// TSO that waits for a safe foreign call, 0 if none does
	u64 entered; // thunk whose code failed its first heap check, 0 if it was none
	u64 top;     // Sp of the topmost frame, 0 if it was not found, and the bounds of its chunk
	u64 top_lo;
	u64 top_hi;
	u64 task;	// the Task that runs the Haskell code, 0 if none does
	// What was last to be read of an info table, and is not in the process's page table, for user space to bring
	// in, which sets it to 0 then; and the process.
	u64 absent;
	u32 absent_in;

	struct walk_stats stats;
	// Counts the changes of layouts and regions; set by user space.
	u32 epoch;
	// An overflow is sampled if a random number is not above this; set by user space.
	u32 keep;
	u32 slot; // index in the map of walks; set by user space

	// Copies of what is known of the last sampled process, until the next change.
	u32 known_in; // epoch
	u32 pid;
	u32 twin; // process whose layout and regions apply: itself, or the parent it was forked from
	u32 haskell;	     // 1 if layout is valid
	u32 regions_version; // 0 without call frame information
	u64 tso_info;	     // info pointer of its TSOs, 0 if none was seen
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
	struct regs regs; // user registers of a thread that is in the kernel
	// Weights of each event's skipped samples, to be added to the next sample.
	u64 carried[MAX_EVENTS];
	struct cached_rule rules[RULE_CACHE_ENTRIES];
	struct cached_info infos[INFO_CACHE_ENTRIES];
} __attribute__((aligned(64)));

// walker is the context of the loops' callbacks.
struct walker {
	struct walk *walk;
};

#define FRAME_MASK (MAX_FRAMES - 1)

// frame_at returns the place of a recorded frame, for any index.
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
