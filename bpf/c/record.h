// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// What the programs and user space exchange. C is the source of truth: Go's copies are
// generated from this file.
#pragma once

#include "kernel.h"

// Maximum frames of one record: leaf part, kernel's frames and root part.
#define MAX_FRAMES 512
#define MAX_KERNEL_FRAMES 64
// Of these, the room for the root-most frames of a stack whose leaf part spent the budget,
// and for the marker between the two parts.
#define MAX_ROOT_FRAMES 64
#define MAX_LEAF_FRAMES (MAX_FRAMES - MAX_ROOT_FRAMES - 1)

// frame_kind is the top byte of a recorded frame; the address below it has at most 56 bits.
// Kernel addresses lose their top byte, which is all ones.
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

// stop_reason is why a walk ended. Zero means success.
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
	STOP_UNKNOWN_FRAME,    // a frame's info table is not a return frame's
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
	SAMPLE_ON_TICK = 1 << 6, // taken by on_tick, not on_event
	SAMPLE_BOOSTED = 1 << 7, // taken by the event that boosts a process
	SAMPLE_IN_TRANSACTION = 1 << 8,
	SAMPLE_NOTED = 1 << 9, // and how the attempt ends will be counted
};

#define NO_CAPABILITY 0xffff

enum record_type {
	RECORD_SAMPLE = 0,
	// A thread's label: frame_count bytes of UTF-8 in place of frames. Only pid and tso are
	// set in the header.
	RECORD_LABEL,
	// A cost-centre stack: a struct ccs_record in place of frames. Only pid is set in the
	// header.
	RECORD_CCS,
	// Ticky counters: frame_count words of ticky_record in place of frames.
	RECORD_TICKY,
	// The words that a process has allocated, in the header's total, when it ends. No
	// frames.
	RECORD_ALLOCATED,
	// A sample of a thread that goes to sleep. The period is the time of its waits since the last one that was sent, the total its CPU time, ns.
	RECORD_WAIT,
	// The thread runs again; the period is the time that it slept. No frames.
	RECORD_WAKE,
	// A thread of a target ends, or has ended; the period is its CPU time, ns, which is
	// complete in the second. No frames.
	RECORD_THREAD_ENDS,
	RECORD_THREAD_ENDED,
	// The thunks that the thread of a sample evaluates, if there are any, the innermost and the outermost: frame_count words
	// in place of frames, each a thunk's address with enum thunk_state in its top byte. The header is the
	// sample's, but total is the number of collections so far.
	RECORD_EVALUATING,
};

// thunk_state is what a thunk that a thread evaluates looks like to others.
enum thunk_state {
	THUNK_UNMARKED = 0, // like one that nobody evaluates
	THUNK_MARKED,	    // a black hole of that thread
	THUNK_TAKEN,	    // a black hole of another thread
	THUNK_EVALUATED,    // it has its value
	THUNK_UNREADABLE,   // not known
};

// thread_time is the CPU time of a thread, ns.
struct thread_time {
	u32 pid;
	u32 tid;
	u64 ns;
};

// ticky_record is a ticky counter. name and kinds are addresses of strings.
struct ticky_record {
	u64 counter;
	u64 arity;
	u64 entries;
	u64 allocs;    // bytes allocated by the code
	u64 allocated; // bytes allocated for closures of this code
	u64 name, kinds;
	u64 padding;
};

// alloc_site is where in the run-time system an allocation probe is. Its samples have no
// weight but counts since the process's start; user space computes weights from them.
enum alloc_site {
	SITE_NONE = 0, // no allocation probe
	SITE_NURSERY,  // a heap check has used up the nursery
	SITE_BLOCK,    // a heap check has used up a block, and gone on to the next
	SITE_LARGE,    // a large object is being allocated
	ALLOC_SITES,
};

// alloc_origin is what came to an allocation probe.
enum alloc_origin {
	ORIGIN_HEAP_CHECK = 0, // compiled code that was about to allocate
	ORIGIN_PRIMOP,	       // a primop, which allocates by a C function
	ORIGIN_FORK,	       // a primop that makes a thread
	ORIGIN_STACK_CHECK,    // compiled code that was about to push a frame: it allocates nothing
};

// ccs_why is the result of reading a cost-centre stack.
enum ccs_why {
	CCS_WHOLE = 0,	 // complete: its centre, and the stack below if there is one
	CCS_UNREADABLE,	 // the stack, its centre or the stack below could not be read
	CCS_IMPLAUSIBLE, // the depth of the stack below is not one less
	CCS_TOO_DEEP,	 // deeper than MAX_CCS_DEPTH
};

struct ccs_record {
	u64 ccs;  // address
	u64 prev; // of the stack below, 0 if there is none
	u64 cc;	  // address of its topmost cost centre, 0 if not known
	u64 label, module, srcloc; // addresses of the cost centre's strings
	u32 is_caf;
	u32 why; // enum ccs_why
};

#define MAX_LABEL 255

// sample_header is the start of a record in the ring buffer. In a sample, frame_count frames
// of eight bytes follow it, leaf first.
struct sample_header {
	u64 time;   // CLOCK_MONOTONIC, ns
	u64 period; // in the event's unit; at SITE_NURSERY: bytes that the heap check or primop wanted, if known; at SITE_LARGE: bytes of the object
	u64 tso;    // Haskell thread id, 0 if none is known
	u64 skipped_words; // words of the stack left out at a FRAME_SKIPPED
	u64 ccs; // address of the running cost-centre stack, 0 if there is none
	u64 total; // at allocation probes: words that the capability has allocated; at the tick and the event beside it: CPU time since the thread was switched to, ns
	u64 large; // at SITE_LARGE: bytes of large objects that were seen; at other sites: hits; at the tick and the event beside it: how often the thread has gone to sleep
	u32 pid;
	u32 tid;
	u32 cpu;
	u32 walk_ns; // time taken by this sample so far
	u32 folded_frames; // frames left out at all FRAME_FOLDED
	u16 event;
	u16 capability;
	u16 frame_count;
	u16 flags;
	u8 stop;
	u8 record; // enum record_type
	u8 site; // enum alloc_site
	u8 origin; // enum alloc_origin, at SITE_NURSERY and SITE_BLOCK; of an attempt to run a transaction: how many words behind the frames are variables
};

// task_place says where the run-time system keeps an OS thread's Task, for a thread of which no sample in Haskell code was seen.
enum task_place {
	TASK_UNKNOWN = 0,
	TASK_AT,      // at an address, and of the process's first thread alone: the run-time system has only one
	TASK_OFFSET,  // at an offset from the thread pointer: in a thread-local variable of the executable
	TASK_MODULE,  // at an offset in a library's thread-local variables
};

// process_layout is what the walker needs to know about a process; keyed by process id.
struct process_layout {
	// Address ranges of info tables: the executable's code and, if Haskell libraries are
	// linked dynamically, the region of shared libraries.
	u64 text_lo[2];
	u64 text_hi[2];
	// Info pointers of the frames that the RTS pushes when a heap check fails:
	// stg_enter_info, and the range of the stg_ret_*_info; 0 if not known.
	u64 enter_info;
	u64 canned_lo, canned_hi;
	// Addresses of the RTS's variables of these names; 0 if not known.
	u64 capabilities, n_capabilities, main_capability;
	u64 stats, generations;
	// The code of primops and heap checks, of which the frames of primops that wait for a
	// collection are a part; the entry code of those that make threads; 0 if not known.
	u64 cmm_lo, cmm_hi;
	u64 prim_lo, prim_hi;
	u64 prim_n_lo, prim_n_hi; // of these, stg_gc_prim_n, whose primop has a number as argument
	u64 fork, fork_on;
	u32 incarnation; // number of the process image; part of the keys of caches
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
	u16 tso_read;	 // bytes to read of a TSO: through the last field that every sample uses
	u16 ticky_entries; // StgEntCounter.entry_count
	u16 capabilities_in_place; // capabilities is the array itself, not a pointer to it
	u16 pinned_blocks; // Capability.pinned_object_blocks, from BaseReg; 0 if not known
	u64 no_trec;	 // StgTSO.trec of a thread that runs no transaction; 0 if not known
	u16 tso_trec;
	u16 trec_entry;	 // sizeof(TRecEntry); 0 if not known
	u16 task_place;	 // enum task_place
	u16 padding[1];
	u64 task_at;	 // address or offset of the variable
	u64 task_module; // address of the word where the dynamic linker has put the library's number
	u64 ticky_head;	 // address of the list of ticky counters; 0 if there is none
	// Sampling rate of each allocation probe: one hit in so many is sampled, on average. Of
	// large objects, which differ in size, one per so many blocks' worth of bytes, or all if
	// 0.
	u32 thin[ALLOC_SITES];
	// Samples of full nurseries, and surveys, may each take one part in so many of the
	// time, and at first that many ns besides; 0 if they may take what they like.
	u32 part, allowance;
};

// Capabilities whose addresses an account keeps.
#define ACCOUNT_CAPABILITIES 64

// alloc_account holds the counts of one process image's allocation probes.
struct alloc_account {
	u64 large; // bytes of large objects that the probe has seen
	u64 hits[ALLOC_SITES]; // at SITE_NONE: those at the probe of full nurseries that found none full
	u32 skip[ALLOC_SITES]; // hits until the next sample
	u64 next_sample;       // earliest time of the next sample of a full nursery, ns
	u64 spent;	       // time that samples took, up to the allowance, ns
	// What the run-time system itself has counted from collections to full nurseries, in bytes:
	// all, and those of large objects; and those of them of the cycle that was seen last.
	u64 counted, counted_large;
	u64 cycle; // its number, from 1; 0 if none was seen
	u64 cycle_all, cycle_large;
	// What lay in nurseries when they were full, in bytes: what compiled code has filled, what
	// C code has filled with threads and their stacks, and what it has filled otherwise.
	u64 heap, threads, other;
	// Of large objects in cycles that were looked at: stack chunks, and all others.
	u64 chunks, objects;
	u64 next_survey; // earliest time of the next survey, ns
	u64 took;	 // that samples of full nurseries and surveys have taken, ns
	u64 bases[ACCOUNT_CAPABILITIES]; // BaseReg of each capability that was seen
};

// transaction_end is how an attempt to run a transaction has ended.
enum transaction_end {
	TRANSACTION_COMMITTED = 0,
	TRANSACTION_FAILED,  // others have changed what it has read: it begins again
	TRANSACTION_RETRIED, // by retry: it waits until one of the variables that it has read changes
	TRANSACTION_THROWN,  // an exception has left it
	TRANSACTION_ENDS,
};

// In the cookie of a probe, behind how a valid attempt ends there, is where its result is.
#define TRANSACTION_RESULT_SHIFT 2

// transaction_window is the window in which attempts are counted; set by user space.
struct transaction_window {
	u64 since;   // when it began, CLOCK_MONOTONIC, ns; 0 while there is none
	u32 thin;    // one of so many attempts is sampled, and fewer when many were
	u32 accepts; // 0 when samples of CPU time are not noted any more
	u64 round;   // number of the turn from which on those that were sampled are counted
	u64 hits;    // of probes since this was set
	u64 most;    // with so many hits transaction_spent gets the round; 0 for no bound
};

// transaction_account holds the counts of one process image's attempts.
struct transaction_account {
	u64 ends[TRANSACTION_ENDS];    // attempts, by how they ended
	u64 sampled[TRANSACTION_ENDS]; // samples of CPU time in attempts that have ended
	u64 noted;		       // samples of CPU time inside of transactions while there was a window
	u64 begun, ended;	       // attempts with such samples: all, and those that have ended
	u64 round, drawn;	       // attempts that were sampled in a round
};

// In the cookie of a probe at a place that makes a constructor's values the place's number stands below the process image's. Places in functions
// that do nothing else are marked: the frame on top of the stack is their caller's.
#define CONSTRUCTION_INCARNATION_SHIFT 32
#define CONSTRUCTION_BY_CALLER (1ULL << 31)

// construction_window says whether values are counted; set by user space.
struct construction_window {
	u64 open;  // not 0 if they are
	u64 round; // number of the turn in which samples are counted
	u64 draws; // samples of a place in a turn after which one is taken half as often
};

// construction_key identifies a count of values: the cookie of the probe that counts them, and, where they are counted by caller, the
// return address on top of the stack; else 0.
struct construction_key {
	u64 cookie, caller;
};

// construction_site counts the values that one place of a process image has made, for one caller.
struct construction_site {
	u64 made;
	u64 next; // the number of the next one that is sampled, in the same round
	u64 round, drawn; // samples in a round
};

#define MAX_EVENTS 64
#define NO_EVENT 0xffff

// thread_state is what is known of an OS thread that was seen running Haskell code.
struct thread_state {
	u64 task; // address of the thread's Task, which never changes
	u32 incarnation;
	u32 padding;
};

// thread_key identifies a Haskell thread: incarnation and thread id.
struct thread_key {
	u64 tso;
	u64 incarnation;
};

// unwind_kind is the kind of a rule of call frame information. User space compiles the rules
// (package cfi, which documents the kinds and fields).
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

// Rows are sorted by address. A bucket of 2^8 bytes of code gives the range of rows to
// search.
#define UNWIND_BUCKET_SHIFT 8

// Rows and buckets lie in chunks of 2^17, a megabyte each.
#define UNWIND_CHUNK_SHIFT 17

struct unwind_bucket {
	u32 first; // row that holds at the bucket's first byte, counted from the region's first row
	u32 last;  // row that holds at its last byte
};

// unwind_region is a mapping of a module that has call frame information.
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
	u32 version; // different for every process_regions ever set; not 0
	struct unwind_region regions[MAX_REGIONS];
};

// walk_stats are counts of one CPU.
struct walk_stats {
	u64 samples;
	u64 nested; // samples skipped because the CPU was taking another one
	u64 thinned; // samples skipped due to walk.keep; others carry their weight
	u64 waits;   // of the target's threads that have begun
	u64 wait_ns; // what that took
};
