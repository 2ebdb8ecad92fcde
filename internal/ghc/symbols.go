package ghc

// Names of the run-time system's functions and variables that probes are put to, or that
// are read by. Many are local symbols: a program that was stripped does not have them.
const (
	// Collections.
	SymGarbageCollect   = "GarbageCollect" // calls stat_startGC and stat_endGC
	SymStartGC          = "stat_startGC"   // (cap, …)
	SymEndGC            = "stat_endGC"     // (cap, initiating thread, live, copied, slop, generation, threads, …)
	SymGCWorkerThread   = "gcWorkerThread" // calls the following two; only the threaded way has it
	SymStartGCWorker    = "stat_startGCWorker"
	SymEndGCWorker      = "stat_endGCWorker"
	SymYieldCapability  = "yieldCapability"           // calls gcWorkerThread
	SymStartGCSync      = "stat_startGCSync"          // (gct): stores the time at which others were asked to stop
	SymElapsedTime      = "getProcessElapsedTime"     // CLOCK_MONOTONIC, ns
	SymBeginFlush       = "nonmovingBeginFlush"       // calls the following
	SymStartFlush       = "stat_startNonmovingGcSync" // the non-moving collector stops all capabilities
	SymFinishFlush      = "nonmovingFinishFlush"      // calls the following
	SymEndFlush         = "stat_endNonmovingGcSync"   // they may go on
	SymOldestGeneration = "oldest_gen"
	SymStats            = "stats"          // an RTSStats
	SymGetAllocations   = "getAllocations" // returns stats.allocated_bytes
	SymGenerations      = "generations"    // the address of the array of them, the youngest first
	SymMBlocks          = "mblocks_allocated"
	SymBlocks           = "n_alloc_blocks"
	SymFlags            = "RtsFlags"
	SymResurrect        = "resurrectThreads"     // called where the run-time system takes its own census
	SymStableTable      = "stable_ptr_table"     // where stable pointers lead
	SymStableSize       = "SPT_size"             // how many entries it has
	SymMBlockSpace      = "mblock_address_space" // begin and end of the heap's addresses

	SymFreeSpace = "free_list_head" // the first of a list of FreeSpace

	// Capabilities.
	SymCapabilities    = "capabilities" // an array of pointers (9.6), or the address of one
	SymNCapabilities   = "n_capabilities"
	SymMainCapability  = "MainCapability"
	SymNurseries       = "nurseries"                  // the address of an array of them
	SymNNurseries      = "n_nurseries"                // more than capabilities if nurseries are in chunks (+RTS -n)
	SymDenseCells      = "nonmoving_alloca_dense_cnt" // a byte: how many cell sizes of the non-moving collector are a word apart (from 9.10)
	SymNextNursery     = "next_nursery"               // the index of the next that is given out, an array by NUMA node
	SymSchedule        = "schedule"                   // calls StgRun; it may be part of the following two
	SymScheduleWait    = "scheduleWaitThread"
	SymScheduleWorker  = "scheduleWorker"
	SymShutdown        = "shutdownHaskellAndExit"
	SymExitReport      = "stat_exitReport" // takes the final counts, from 9.0
	SymExitReportUntil = "stat_exit"       // does so before 9.0

	// Threads.
	SymStgRun            = "StgRun"    // (code, base)
	SymStgReturn         = "StgReturn" // where Haskell code returns to the scheduler
	SymReturnToSched     = "stg_returnToSched"
	SymReturnNotPaused   = "stg_returnToSchedNotPaused"
	SymReturnButFirst    = "stg_returnToSchedButFirst"
	SymThreadFinished    = "stg_threadFinished"
	SymStopThread        = "stg_stop_thread_info"
	SymThreadPaused      = "threadPaused"
	SymSuspendThread     = "suspendThread" // (base, …)
	SymResumeThread      = "resumeThread"  // calls dirty_TSO
	SymDirtyTSO          = "dirty_TSO"     // (cap, tso)
	SymTryWakeupThread   = "tryWakeupThread"
	SymScheduleThread    = "scheduleThread"
	SymLabelThreadPrimop = "stg_labelThreadzh" // R1 is the thread; before 9.6 R2 is a string
	SymLabelThread       = "labelThread"       // (cap, tso, array) from 9.6 on
	SymSetThreadLabel    = "setThreadLabel"    // from 9.6 on

	// The Task of the OS thread that looks: a thread-local variable in the threaded way.
	SymMyTask = "my_task"

	// Allocation.
	SymHeapCheck         = "stg_gc_noregs"     // where all heap checks that fail meet
	SymAllocateMightFail = "allocateMightFail" // (cap, words)
	SymStackOverflow     = "threadStackOverflow"
	SymCreateThread      = "createThread"
	SymPrimFirst         = "stg_gc_prim"           // the first of the frames of primops that wait for a collection
	SymPrimN             = "stg_gc_prim_n"         // of those of a primop with a number, as the size of an array
	SymPrimNUntil        = "stg_gc_prim_p_ll_info" // what follows it
	SymPrimUntil         = "stg_ret_v_info"        // what follows the last
	SymFork              = "stg_forkzh"
	SymForkOn            = "stg_forkOnzh"
	SymEnter             = "stg_enter_info" // the frame that a thunk's failed heap check pushes

	// Transactions.
	SymAtomicallyFrame  = "stg_atomically_frame_info" // returned to when a transaction's code has ended
	SymCommit           = "stmCommitTransaction"      // (cap, trec); 0 if others have changed what it has read
	SymRetry            = "stg_retryzh"
	SymStartTransaction = "stmStartTransaction" // (cap, outer)
	SymMaxCommits       = "max_commits"         // how many transactions may have begun
	SymSTMWait          = "stmWait"             // (cap, tso, trec); likewise
	SymRaise            = "stg_raisezh"
	SymValidate         = "stmValidateNestOfTransactions" // (cap, trec); likewise
	SymNoTRec           = "stg_NO_TREC_closure"           // StgTSO.trec outside of transactions

	// Ticky counters.
	SymTickyCounters = "ticky_entry_ctrs" // the first of a linked list of StgEntCounter
)

// SymReturnValues are the frames with a returned value that a failed heap check of a
// continuation pushes.
var SymReturnValues = [...]string{
	"stg_ret_v_info", "stg_ret_p_info", "stg_ret_n_info", "stg_ret_f_info", "stg_ret_d_info", "stg_ret_l_info",
}

// Update frames (rts/Updates.cmm): that of a thunk, of a CAF, and of either once its thread
// has paused. Their info tables' symbols end in InfoSuffix.
const (
	UpdateFrameName       = "stg_upd_frame"
	CAFUpdateFrameName    = "stg_bh_upd_frame"
	MarkedUpdateFrameName = "stg_marked_upd_frame"
)

// InfoSuffix ends the symbols of info tables.
const InfoSuffix = "_info"

// CmmPrefix begins the names of the run-time system's code that is written in Cmm.
const CmmPrefix = "stg_"
