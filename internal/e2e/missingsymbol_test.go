package e2e

import (
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/agent/rtsites"
	"ccagent/internal/elftest"
	"ccagent/internal/testprog"
)

// missed has the warnings for missing symbols. Others need no warning: there is a
// replacement, or this release does not have them.
var missed = map[string][]string{
	"GarbageCollect": {"event gc is not available"}, "stat_startGC": {"event gc is not available"}, "stat_endGC": {"event gc is not available"},
	"schedule": {"event threads is not available"}, "StgRun": {"event threads is not available"}, "StgReturn": {"event threads is not available"},
	"stg_returnToSchedNotPaused": {"event threads is not available"}, "stg_threadFinished": {"event threads is not available"},
	"stg_stop_thread_info": {"event threads is not available"},
	"stg_returnToSched":    {"event threads is not available", "event alloc is not available"},
	"stg_gc_noregs":        {"event alloc is not available"},

	"gcWorkerThread": {"event gc", "parallel GC"}, "stat_startGCWorker": {"event gc", "parallel GC"}, "stat_endGCWorker": {"event gc", "parallel GC"},
	"mblocks_allocated": {"event gc", "size of the heap"}, "n_alloc_blocks": {"event gc", "size of the heap"},
	"oldest_gen": {"event gc", "heap's parameters"}, "RtsFlags": {"event gc", "heap's parameters"}, "stats": {"event gc", "own figures"},
	"stg_returnToSchedButFirst": {"event threads", "for the scheduler"}, "threadPaused": {"event threads", "for the scheduler"},
	"suspendThread": {"event threads", "safe foreign calls"}, "resumeThread": {"event threads", "safe foreign calls"},
	"dirty_TSO": {"event threads", "safe foreign calls"}, "tryWakeupThread": {"event threads", "woken"},
	"scheduleThread": {"event threads", "created"}, "stg_labelThreadzh": {"event threads", "labels"},
	"allocateMightFail": {"event alloc", "large objects"}, "n_capabilities": {"event alloc", "itself counts"},
}

// A program whose symbol table lacks any one of the run-time system's symbols runs as
// without ccagent, and the other events are recorded.
func TestMissingSymbol(t *testing.T) {
	testprog.NeedRoot(t)
	objcopy := testprog.NeedTool(t, "objcopy", "binutils")
	exe := testprog.Build(t, "threads100", testprog.Options{Threaded: true, NoDebug: true})
	f := elftest.Open(t, exe)
	symbols, err := rtsites.ReadSymbols(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	left := maps.Clone(missed)
	for _, name := range symbols.Names() {
		warned := left[name]
		delete(left, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			without := filepath.Join(t.TempDir(), "program")
			if out, err := exec.Command(objcopy, "--strip-symbol="+name, exe, without).CombinedOutput(); err != nil {
				t.Fatalf("objcopy: %v\n%s", err, out)
			}
			_, r := record(t, []string{"-e", "cpu-clock,alloc,gc,threads"}, without, "10", "4", "1")
			if want := "done 5\n"; !strings.HasSuffix(r.stdout, want) {
				t.Errorf("the program's output ends otherwise than in %q:\n%s", want, r.stdout)
			}
			if len(warned) > 0 && strings.Contains(warned[0], "not available") {
				for _, line := range warned {
					wantLine(t, r.stderr, line, "events that are available go on")
				}
			} else if len(warned) > 0 {
				wantLine(t, r.stderr, append(warned, "symbol table")...)
			}
		})
	}
	if len(left) > 0 {
		t.Errorf("the program does not have %v", left)
	}
}
