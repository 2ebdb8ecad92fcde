// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// What a walk works on, and its limits.
#pragma once

#include "arch.h"
#include "record.h"

// GHC's closure types that the walker knows, the same from 8.10 to 9.14.
enum {
	RET_BCO = 29,
	RET_SMALL = 30,
	RET_BIG = 31,
	RET_FUN = 32,
	UPDATE_FRAME = 33,
	CATCH_FRAME = 34,
	UNDERFLOW_FRAME = 35,
	STOP_FRAME = 36,
	TSO = 52,
	ATOMICALLY_FRAME = 55,
	CATCH_RETRY_FRAME = 56,
	CATCH_STM_FRAME = 57,
	ANN_FRAME = 65,
};

// Offsets from BaseReg, the same from 8.10 to 9.14.
#define BASE_CURRENT_TSO 872
#define BASE_CAPABILITY_NO 920
#define BASE_RUNNING_TASK 928
#define BASE_READ_LEN 64 // from rCurrentTSO through the running task

// rRet: why a thread returned to the scheduler, and the value for a full nursery.
#define BASE_RET 912
#define HEAP_OVERFLOW 1
#define THREAD_BLOCKED 4
// In the eventlog, a blocked thread's reason is this plus why_blocked.
#define STOPPED_FOREIGN_CALL 6

// InCall: a call from C into Haskell. Within a safe foreign call that has called
// back, the thread that waits is the enclosing call's.
#define INCALL_SUSPENDED_TSO 8
#define INCALL_PREV_STACK 48

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

// Stack chunks followed; a chunk holds 32 KiB by default, so this is 128 MiB.
#define MAX_CHUNKS 4096

// A frame larger than this is taken for garbage: RET_FUN and RET_BCO frames
// carry their size in the target's memory.
#define MAX_FRAME_WORDS (1 << 20)

#define CACHE_ENTRIES 4096

// A deep stack is mostly recursion: the same few frames over and over. The
// first two copies of a cycle of at most this many frames are recorded, then a
// FRAME_FOLDED, and further copies are left out.
#define MAX_CYCLE 32

// What is remembered of an info table, per CPU.
struct cached_info {
	u64 info;
	u32 generation;
	u16 words; // frame size; 0 = depends on the frame
	u8 type;   // closure type
	u8 kind;   // enum frame_kind, or NO_FRAME
	u32 walk;  // in which it was last recorded, and where
	u32 position;
};

#define NO_FRAME 0xff

// Words of a TSO that are read: through the id in the profiling way of
// GHC ≥ 9.10, rounded up to a power of two so that an index can be masked.
#define TSO_READ_WORDS 16

// Words below the CFA that are read at once: callees save registers there.
#define SAVE_AREA_WORDS 8

struct walk {
	struct sample_header header;
	u64 frames[MAX_FRAMES];
	u64 window[WINDOW_WORDS];
	u64 window_at;	  // address of window[0]
	u32 window_words; // how many are valid
	u32 window_limit; // bytes to read next
	u32 max_frames;
	u64 sp;
	u64 chunk_lo;
	u64 chunk_hi;
	u64 walk_until; // frames from here on are not walked
	u32 frame_count;
	u32 chunks;
	// Folding: the cycle's length (0 = none is being folded), the place in
	// it that comes next, the whole copies left out; and how many frames in
	// a row were each seen last the same number of frames (the lag) before.
	u32 cycle;
	u32 phase;
	u32 folded_copies;
	u32 lag;
	u32 run;
	u32 folding;
	u32 number; // of this walk on this CPU
	u32 found; // find_frame's result
	u32 busy;  // a walk that can be interrupted is using this
	u64 task;  // the Task that runs the Haskell code, 0 if none does
	u64 base;    // BaseReg of the Haskell code, 0 if it could not be had
	u64 waiting; // the thread object that waits for a safe foreign call, 0 if none does
	struct process_layout layout;
	u64 tso[TSO_READ_WORDS];
	struct regs regs;
	// C frames
	struct unwind unwind;
	u64 save_area[SAVE_AREA_WORDS];
	u32 outcome;	// enum unwind_outcome
	u32 after_call; // 1 if unwind.pc is a return address
};

struct info_cache {
	struct cached_info entries[CACHE_ENTRIES];
};

// What a walk works on: of the current CPU, its process and its thread.
struct walker {
	struct walk *walk;
	struct info_cache *cache;
	const struct process_regions *regions; // null without call frame information
	struct thread_state *thread;	       // null if the thread is not known
	bool haskell;			       // walk->layout holds the process's
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
