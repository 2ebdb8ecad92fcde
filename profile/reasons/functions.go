package reasons

import "strings"

// The parts that advice depends on.
const (
	copying   = "copying what is live"
	compact   = "compacting in place"
	marking   = "marking, beside the program or before it compacts"
	sweeping  = "sweeping"
	waiting   = "threads of the collector waiting for each other"
	stm       = "software transactional memory"
	scheduler = "scheduling Haskell threads"
	io        = "waiting for files, sockets and timers"
	blocks    = "memory blocks for the heap"
	thunks    = "updating thunks, and entering those that are being evaluated"
	unknown   = "calling functions that are not known when compiling"
	checks    = "heap and stack checks"
	unnamed   = "code without a name"
	inlined   = "inlined into functions of the program"
)

// group is the functions of a part: those that have one of the names, or begin with one that ends
// in *.
type group struct {
	part  string
	names []string
}

// collector is the collector's parts.
var collector = []group{
	{compact, []string{"compact", "update_fwd*", "thread_*", "unthread*", "thread", "move"}},
	{marking, []string{"mark_*", "nonmovingMark*", "nonmoving*"}},
	{sweeping, []string{"sweep*", "nonmovingSweep*"}},
	{copying, []string{
		"evacuate*", "scavenge*", "copy*", "todo_block_full*", "alloc_todo_block*", "alloc_for_copy*", "push_scanned_block*",
		"eval_thunk_selector*", "unchain_thunk_selectors*", "grab_local_todo_block*", "steal_todo_block*", "markCAFs", "markCapability*",
		"traverseWeakPtrList*", "any_work*", "GarbageCollect", "gcWorkerThread", "recordMutable*",
	}},
}

// runtime is the parts of the rest of the run-time system.
var runtime = []group{
	{stm, []string{"stm*", "*_trec", "*_trec_*", "validate_*", "*_watch_queue_*", "lock_tvar*", "unlock_tvar*", "cond_lock_*", "get_entry_for*", "park_*", "unpark_*", "merge_*"}},
	{scheduler, []string{
		"schedule*", "tryWakeupThread", "wakeup*", "throwTo*", "*Capability*", "*TSO*", "*WSDeque*", "*Spark*", "threadPaused", "suspendThread", "resumeThread",
		"createThread", "createIOThread", "rts_eval*", "raiseAsync*", "threadStack*", "sendMessage*", "messageBlackHole*", "updateThunk*", "appendToRunQueue*", "removeThreadFromQueue*", "yield*",
	}},
	{io, []string{"awaitEvent*", "awaitCompleted*", "pollCompleted*", "syncIO*", "syncDelay*", "*IOManager*", "*TimeoutQueue*", "*Ticker*", "itimer*", "ioManager*", "handle_tick", "*Timer*", "waitCondition", "*OSCondition*", "*OSThread*"}},
	{blocks, []string{"alloc*", "free*", "split_*", "coalesce_*", "getMBlock*", "osGetMBlocks*", "osCommit*", "osFree*", "osDecommit*", "resize*", "initMBlock*", "*Nursery*", "*Nurseries*", "*Group*", "returnMemory*"}},
}

// machine is the parts of the STG machine's own code.
var machine = []group{
	{thunks, []string{"stg_upd_*", "stg_bh_*", "stg_marked_upd_*", "stg_BLACKHOLE*", "stg_CAF_*", "__stg_EAGER*", "stg_sel_*", "stg_IND*"}},
	{unknown, []string{"stg_ap_*", "stg_PAP*", "stg_AP*", "stg_enter*"}},
	{checks, []string{"stg_gc_*", "__stg_gc_*", "stg_returnTo*", "stg_ret_*", "stg_stack_underflow*", "stg_restore*"}},
	{"exceptions", []string{"stg_catch*", "stg_raise*", "stg_mask*", "stg_unmask*"}},
	{"MVars, transactions and threads", []string{"stg_*MVar*", "stg_atomically*", "stg_*TVar*", "stg_fork*", "stg_yield*", "stg_block_*", "stg_retry*"}},
	{"arrays", []string{"stg_*Array*", "stg_*array*"}},
}

// find returns the part that a function is of, or else.
func find(groups []group, function, or string) string {
	for _, g := range groups {
		for _, name := range g.names {
			if like(name, function) {
				return g.part
			}
		}
	}
	return or
}

// like reports whether a name is a pattern's, in which * at its begin and end stands for anything.
func like(pattern, name string) bool {
	from, begins := strings.CutPrefix(pattern, "*")
	core, ends := strings.CutSuffix(from, "*")
	switch {
	case begins && ends:
		return strings.Contains(name, core)
	case begins:
		return strings.HasSuffix(name, core)
	case ends && !strings.Contains(core, "*"):
		return strings.HasPrefix(name, core)
	case ends:
		a, b, _ := strings.Cut(core, "*")
		return strings.HasPrefix(name, a) && strings.Contains(name[len(a):], b)
	}
	return name == pattern
}
