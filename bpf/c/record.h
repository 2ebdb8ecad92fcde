// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// What the programs and user space exchange. C is the source of truth: Go's
// copies are generated from these.
#pragma once

#include "kernel.h"

// Frames of one record at the most: leaf part, kernel's frames and root part.
#define MAX_FRAMES 512
#define MAX_KERNEL_FRAMES 64
// Of these, what is kept for the root-most frames of a stack whose leaf part
// spent the budget, and for the marker between the two.
#define MAX_ROOT_FRAMES 64
#define MAX_LEAF_FRAMES (MAX_FRAMES - MAX_ROOT_FRAMES - 1)

// frame_kind sits in the top byte of a recorded frame; the address below it
// has at most 56 bits. Kernel addresses lose their top byte, which is all ones.
enum frame_kind {
	FRAME_PC = 0,
	FRAME_RETURN,
	FRAME_UPDATE,
	FRAME_CATCH,
	FRAME_STM,
	FRAME_RET_FUN,
	FRAME_RET_BCO,
	FRAME_UNDERFLOW,
	FRAME_STOP,
	FRAME_C,
	FRAME_KERNEL,
	FRAME_SKIPPED,
	FRAME_CONTEXT,
	FRAME_ANN,
	FRAME_FOLDED,
};

#define FRAME_KIND_SHIFT 56
#define FRAME_ADDRESS_MASK ((1ULL << FRAME_KIND_SHIFT) - 1)

// stop_reason says why a walk ended. Zero is the good end.
enum stop_reason {
	STOP_ROOT = 0,	       // at the STOP frame
	STOP_RECOVERED,	       // budget spent; the root-most frames were found
	STOP_BUDGET,	       // budget spent
	STOP_NO_HASKELL,       // the registers hold no Haskell context
	STOP_TOP_AMBIGUOUS,    // no return frame at the stack's top or near it
	STOP_UNREADABLE_STACK, // stack memory cannot be read
	STOP_UNREADABLE_INFO,  // an info table cannot be read
	STOP_IMPLAUSIBLE_INFO, // a frame's first word is no info pointer
	STOP_OUTSIDE_CHUNK,    // a frame reaches beyond its chunk
	STOP_UNREADABLE_TSO,   // in Haskell code, but without a thread that has this stack
	STOP_CHUNK_LIMIT,      // more chunks than are followed
	STOP_UNKNOWN_FRAME,    // a frame's info table is of something else
	STOP_C_UNWIND,	       // C frames cannot be unwound further
	STOP_NO_USER_CONTEXT,  // a kernel thread, or one that is exiting
};

enum sample_flags {
	SAMPLE_IN_KERNEL = 1 << 0,
	SAMPLE_TOP_SCANNED = 1 << 1,
	SAMPLE_TOP_CFI = 1 << 2,
	SAMPLE_VIA_C = 1 << 3,
	SAMPLE_CONTEXT = 1 << 4,
	SAMPLE_FOLDED = 1 << 5,
};

#define NO_CAPABILITY 0xffff

enum record_type {
	RECORD_SAMPLE = 0,
	// A thread's label: frame_count bytes of UTF-8 in place of frames. Only
	// pid and tso are set in the header.
	RECORD_LABEL,
	// A cost-centre stack, in place of frames: struct ccs_record. Only pid is
	// set in the header.
	RECORD_CCS,
	// Ticky counters, in place of frames: frame_count words of ticky_record.
	RECORD_TICKY,
	// What a process that ends has allocated, in words, in the header's total.
	// No frames.
	RECORD_ALLOCATED,
	// A sample of a thread that ceases to run, without a period.
	RECORD_WAIT,
	// The thread runs again; the period is for how long it did not. No frames.
	RECORD_WAKE,
};

// A ticky counter. Names are addresses.
struct ticky_record {
	u64 counter;
	u64 arity;
	u64 entries;
	u64 allocs;    // bytes allocated by the code
	u64 allocated; // bytes of such closures that were allocated
	u64 name, kinds;
	u64 padding;
};

// alloc_site says where in the run-time system an allocation probe is. Its
// samples tell no weight but counts since the process's start; user space makes
// weights of them.
enum alloc_site {
	SITE_NONE = 0, // no allocation probe
	SITE_NURSERY,  // a heap check has used up the nursery
	SITE_BLOCK,    // a heap check has used up a block, and gone on to the next
	SITE_LARGE,    // a large object is being allocated
	ALLOC_SITES,
};

// ccs_why says what is known of a cost-centre stack.
enum ccs_why {
	CCS_WHOLE = 0,	 // its centre, and the stack below if there is one
	CCS_UNREADABLE,	 // it, its centre or the stack below could not be read
	CCS_IMPLAUSIBLE, // the stack below is not one less deep
	CCS_TOO_DEEP,	 // further down than is looked
};

struct ccs_record {
	u64 ccs;  // address
	u64 prev; // of the stack below, 0 if there is none
	u64 cc;	  // of its topmost cost centre, 0 if not known
	u64 label, module, srcloc; // of the names
	u32 is_caf;
	u32 why; // enum ccs_why
};

#define MAX_LABEL 255

// One record in the ring buffer: of a sample, frame_count frames of eight bytes
// follow it, leaf first.
struct sample_header {
	u64 time;   // CLOCK_MONOTONIC, ns
	u64 period; // in the event's unit; at full nurseries: what a heap check wanted
	u64 tso;    // Haskell thread id, 0 if none is known
	u64 skipped_words; // of the stack, where a FRAME_SKIPPED stands
	u64 ccs; // address of the running cost-centre stack, 0 if there is none
	u64 total; // at allocation probes: words that the capability has allocated
	u64 large; // at allocation probes: bytes of large objects that were seen
	u32 pid;
	u32 tid;
	u32 cpu;
	u32 walk_ns; // what this sample cost up to here
	u32 folded_frames; // left out where FRAME_FOLDED stand
	u16 event;
	u16 capability;
	u16 frame_count;
	u16 flags;
	u8 stop;
	u8 record; // enum record_type
	u8 site; // enum alloc_site
	u8 padding;
};

// What the walker must know of a process; keyed by process id.
struct process_layout {
	// Where info tables lie: the executable's code and, when Haskell
	// libraries are linked dynamically, the region of shared libraries.
	u64 text_lo[2];
	u64 text_hi[2];
	// Info pointers of frames that the RTS pushes when a heap check fails:
	// stg_enter_info, and the range of the stg_ret_*_info; 0 if not known.
	u64 enter_info;
	u64 canned_lo, canned_hi;
	// The RTS's variables of these names; 0 if not known.
	u64 capabilities, n_capabilities, main_capability;
	u32 generation; // differs for every program image; keys the info-table cache
	u16 tso_stackobj;
	u16 tso_id;
	u16 stack_size; // StgStack.stack_size, in words
	u16 stack_sp;
	u16 stack_first; // StgStack.stack
	u16 header;	 // sizeof(StgHeader)
	u16 task_incall; // Task.incall
	u16 tso_label;	 // 0 before GHC 9.6
	u16 total_allocated; // Capability.total_allocated, from BaseReg
	u16 tso_cccs;	 // StgTSO.prof.cccs; 0 but in the profiling way
	u16 tso_read;	 // bytes of a TSO, through the last field that every sample uses
	u16 ticky_entries; // StgEntCounter.entry_count
	u16 capabilities_in_place; // the variable is the array, not its address
	u16 padding;
	u64 ticky_head;	 // where the list of ticky counters begins; 0 if there is none
	// One in so many hits of an allocation probe is sampled, on average; of large
	// objects, which differ in size, one in so many blocks' worth of bytes, or
	// all if 0.
	u32 thin[ALLOC_SITES];
};

// What the allocation probes of a program image have counted.
struct alloc_account {
	u64 large; // bytes of large objects
	u64 hits[ALLOC_SITES];
	u32 skip[ALLOC_SITES]; // hits until the next sample
	s64 skip_bytes;	       // of large objects, likewise
};

#define MAX_EVENTS 64

// What is remembered of an OS thread that was seen running Haskell code.
struct thread_state {
	u64 task; // the RTS's Task of the thread; fixed for its life
	u32 generation;
	u32 padding;
};

// A Haskell thread of a program image.
struct thread_key {
	u64 tso;
	u64 generation;
};

// Call frame information, compiled by user space (package cfi, which says what
// each kind and field means).
enum unwind_kind {
	UNWIND_NONE = 0,
	UNWIND_UNKNOWN,
	UNWIND_ROOT,
	UNWIND_FRAME,
	UNWIND_FRAME_DEREF,
	UNWIND_PLT,
	UNWIND_HASKELL,
	UNWIND_HASKELL_DEREF,
};

#define UNWIND_RA_SIGNED (1 << 14)
#define UNWIND_SIGNAL (1 << 15)
#define UNWIND_LOST (-32768)
#define UNWIND_SAVED 12

struct unwind_rule {
	u8 kind;
	u8 reg;
	u16 flags;
	s32 offset;
	s16 saved[UNWIND_SAVED];
};

struct unwind_row {
	u32 addr; // from the region's base
	u32 rule; // from the region's first rule
};

// Rows are sorted by address, and found by the bucket of code that an address is
// in.
#define UNWIND_BUCKET_SHIFT 8

struct unwind_bucket {
	u32 first; // the row that holds at its beginning, from the region's first
	u32 last;  // the row that holds at its end
};

// A mapping of a module that has call frame information.
struct unwind_region {
	u64 start, end; // of the mapping
	u64 base;	// run-time address that rows count from
	u32 first_row;
	u32 first_rule;
	u32 first_bucket;
	u32 bucket_count;
};

#define MAX_REGIONS 64

struct process_regions {
	u32 count;
	u32 version; // differs for every one that was ever set; not 0
	struct unwind_region regions[MAX_REGIONS];
};

// Counted per CPU.
struct walk_stats {
	u64 samples;
	u64 nested; // not taken because another was being taken on that CPU
	u64 thinned; // not taken by walk.keep; their weight is in others
};
