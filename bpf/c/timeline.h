// SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
// What the probes in the run-time system's code send to user space.
#pragma once

#include "record.h"

// rts_probe is what a probe observes. The probe's attach cookie contains it.
enum rts_probe {
	RTS_GC_START = 0,  // stat_startGC(cap, …); only where the GC's own times are not known
	RTS_GC_END,	   // stat_endGC(cap, …, live, copied, slop, gen, threads, …)
	RTS_WORKER_START,  // stat_startGCWorker(cap, …): a capability has stopped for a parallel GC
	RTS_WORKER_DONE,   // stat_endGCWorker(cap, …): its work is done, and it waits for the others
	RTS_WORKER_END,	   // after gcWorkerThread(cap): it goes on. Has no capability
	RTS_FLUSH_START,   // stat_startNonmovingGcSync(): the non-moving GC asks all to stop. Has no capability
	RTS_FLUSH_END,	   // stat_endNonmovingGcSync(): they may go on. Has no capability
	RTS_RUN,	   // StgRun(code, base): a capability runs a thread
	RTS_STOP,	   // a thread returns to the scheduler
	RTS_SUSPEND,	   // suspendThread(base, …): a safe foreign call begins
	RTS_RESUME,	   // dirty_TSO(cap, tso) within resumeThread: it has ended
	RTS_WAKEUP,	   // tryWakeupThread(cap, tso)
	RTS_CREATE,	   // scheduleThread(cap, tso)
	RTS_LABEL_CSTRING, // labelThread# before GHC 9.6: tso, NUL-terminated text
	RTS_LABEL_ARRAY,   // labelThread(cap, tso, array) from GHC 9.6 on
	RTS_SPARKS,	   // no probe: follows RTS_GC_END where sparks were made; words are SPARK_COUNTERS sums over all capabilities
	RTS_PROBES,
};

// Flag in the cookie of a probe at a call instruction: the return address is not yet on the
// stack.
#define RTS_AT_CALL (1 << 8)

// From this bit on the cookie has the slot of the process's counts.
#define RTS_SLOT_SHIFT 16

enum rts_group {
	RTS_GROUP_GC = 0,
	RTS_GROUP_THREADS,
	RTS_GROUPS,
};

#define RECORD_RTS 16

// rts_globals has the addresses and offsets of what the probes read in a process.
struct rts_globals {
	u64 mblocks_allocated; // addresses of the RTS's variables; 0 if not known
	u64 n_alloc_blocks;
	u64 capabilities;
	u64 n_capabilities;
	u64 main_capability;
	u64 stats;		   // RTSStats
	u16 capabilities_in_place; // capabilities is the array itself, not a pointer to it
	u16 why_blocked;	   // offset in the TSO
	u16 why_blocked_wide;	   // 1 if why_blocked has 32 bits, not 16
	// Offset of gc_sync_start_elapsed in the gc_thread, which gc_start_elapsed follows; 0 if
	// not known. Both are times of CLOCK_MONOTONIC in ns.
	u16 gc_times;
	u16 sparks; // offset of spark_stats in the Capability; 0 if it has none
};

// SPARK_COUNTERS is the number of counters that SparkCounters has (rts/Sparks.h): sparks created, duds, overflowed, converted,
// collected, fizzled.
#define SPARK_COUNTERS 6

// rts_gc_word indexes the words after the header of a GC's end.
enum rts_gc_word {
	GC_LIVE = 0, // live words; so are the following two
	GC_COPIED,
	GC_SLOP,
	GC_GENERATION,
	GC_THREADS,
	GC_MAX_COPIED, // words; so is the next
	GC_BALANCED,
	GC_MBLOCKS,
	GC_BLOCKS,
	GC_COUNT, // collections before this one
	GC_REQUESTED, // when the other capabilities were asked to stop, ns; so is the next
	GC_STARTED, // when all had stopped and the work began; 0 if not known
	GC_FIRST_CAPABILITY, // from here on, the words allocated by each capability
};

#define MAX_RTS_CAPABILITIES 20
#define MAX_SPARK_CAPABILITIES 256
#define MAX_RTS_WORDS (GC_FIRST_CAPABILITY + MAX_RTS_CAPABILITIES)

// rts_record is a RECORD_RTS. The header's event is an enum rts_probe, its capability and
// thread are those concerned. For a stop, the period is the reason; for a label, frame_count
// is its bytes and record is RECORD_LABEL. The total counts the group's records that this CPU
// has dropped before.
struct rts_record {
	struct sample_header header;
	u64 words[MAX_RTS_WORDS + 2];
};

// rts_counts are the counts of one group of one process on one CPU.
struct rts_counts {
	u64 hits;
	u64 records; // sent
	u64 dropped; // not sent: ring buffer full, or rate limit reached
	u64 interval;  // number of the current interval, and the records sent in it
	u64 in_interval;
};

// A CPU adds its hits to the total in steps of this size, to avoid contention.
#define RTS_HITS_STEP 32

// Rate limit: a CPU sends at most RTS_INTERVAL_RECORDS records of threads per interval of
// 2^23 ns.
#define RTS_INTERVAL_SHIFT 23
#define RTS_INTERVAL_RECORDS 4096
