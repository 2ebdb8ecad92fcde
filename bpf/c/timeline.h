// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// What the probes in the run-time system's own code send to user space.
#pragma once

#include "record.h"

// rts_probe says what is probed. A probe's attach cookie holds it.
enum rts_probe {
	RTS_GC_START = 0,  // stat_startGC(cap, …)
	RTS_GC_END,	   // stat_endGC(cap, …, live, copied, slop, gen, threads, …)
	RTS_WORKER_START,  // stat_startGCWorker(cap, …)
	RTS_WORKER_END,	   // stat_endGCWorker(cap, …)
	RTS_RUN,	   // StgRun(code, base): a capability runs a thread
	RTS_STOP,	   // a thread returns to the scheduler
	RTS_SUSPEND,	   // suspendThread(base, …): a safe foreign call begins
	RTS_RESUME,	   // dirty_TSO(cap, tso) within resumeThread: it has ended
	RTS_WAKEUP,	   // tryWakeupThread(cap, tso)
	RTS_CREATE,	   // scheduleThread(cap, tso)
	RTS_LABEL_CSTRING, // labelThread# before GHC 9.6: tso, NUL-terminated text
	RTS_LABEL_ARRAY,   // labelThread(cap, tso, array) from GHC 9.6 on
	RTS_PROBES,
};

// Set in the cookie where the probe is at a call: the return address is not on the
// stack yet.
#define RTS_AT_CALL (1 << 8)

enum rts_group {
	RTS_GROUP_GC = 0,
	RTS_GROUP_THREADS,
	RTS_GROUPS,
};

#define RECORD_RTS 16

// Where the run-time system of a process keeps what the probes read.
struct rts_globals {
	u64 mblocks_allocated; // addresses of its variables; 0 if not known
	u64 n_alloc_blocks;
	u64 capabilities;
	u64 n_capabilities;
	u64 main_capability;
	u64 stats;		   // RTSStats
	u16 capabilities_in_place; // an array of pointers, not a pointer to one
	u16 why_blocked;	   // in the TSO
	u16 why_blocked_wide;	   // it is a word of 32 bits, not of 16
	u16 padding;
};

// The words that follow the header of a RECORD_RTS of a GC's end.
enum rts_gc_word {
	GC_LIVE = 0, // words, as the following two
	GC_COPIED,
	GC_SLOP,
	GC_GENERATION,
	GC_THREADS,
	GC_MAX_COPIED, // words, as the next
	GC_BALANCED,
	GC_MBLOCKS,
	GC_BLOCKS,
	GC_COUNT, // collections before this one
	GC_FIRST_CAPABILITY, // from here on: words that each capability has allocated
};

#define MAX_RTS_CAPABILITIES 20
#define MAX_RTS_WORDS (GC_FIRST_CAPABILITY + MAX_RTS_CAPABILITIES)

// The header's event is an enum rts_probe, the capability and thread are what it
// is about. Of a stop, the period is the reason; of a label, frame_count is in
// bytes and record is RECORD_LABEL.
struct rts_record {
	struct sample_header header;
	u64 words[MAX_RTS_WORDS + 2];
};

// Counted per CPU and group.
struct rts_counts {
	u64 hits;
	u64 records; // sent
	u64 dropped; // not sent: the ring buffer was full, or the bucket empty
	u64 bucket;  // a stretch of time, and the records sent in it
	u64 in_bucket;
};

// A CPU adds its hits to those of all in steps, so that CPUs seldom meet there.
#define RTS_HITS_STEP 32

// A CPU sends no more records of threads in each stretch of 2^23 ns.
#define RTS_BUCKET_SHIFT 23
#define RTS_BUCKET_RECORDS 1024
