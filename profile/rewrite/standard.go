package rewrite

import "ccagent/eventlog"

// defines reports whether an event of GHC's own holds for the whole log. A cut keeps such
// an event wherever it is.
func defines(ev eventlog.Event) bool {
	switch ev := ev.(type) {
	case *eventlog.CapsetCreate, *eventlog.CapsetAssignCap, *eventlog.RTSIdentifier, *eventlog.ProgramArgs, *eventlog.ProgramEnv,
		*eventlog.OSProcessPID, *eventlog.OSProcessPPID, *eventlog.WallClock, *eventlog.CapCreate, *eventlog.ThreadLabel,
		*eventlog.CreateThread, *eventlog.TaskCreate, *eventlog.TaskMigrate, *eventlog.TaskDelete, *eventlog.HeapInfo,
		*eventlog.HeapProfBegin, *eventlog.ProfBegin, *eventlog.CostCentre, *eventlog.InfoTable, *eventlog.PerfName,
		*eventlog.TickyCounterDef:
		return true
	case *eventlog.UserBinaryMsg:
		// These are definitions of strings and source locations by
		// ghc-stack-profiler.
		return len(ev.Data) >= 2 && ev.Data[0] == 0xff && (ev.Data[1] == 0xcc || ev.Data[1] == 0xcd)
	}
	return false
}

// state tracks what is in progress on each capability before the range starts.
type state struct {
	running map[int]uint32 // thread by capability
	gc      map[int]bool
	census  bool // inside a heap sample that is kept
}

func newState() *state { return &state{running: make(map[int]uint32), gc: make(map[int]bool)} }

func (s *state) follow(cap int, ev eventlog.Event) {
	switch ev := ev.(type) {
	case *eventlog.RunThread:
		s.running[cap] = ev.Thread
	case *eventlog.StopThread:
		delete(s.running, cap)
	case *eventlog.GCStart:
		s.gc[cap] = true
	case *eventlog.GCEnd:
		delete(s.gc, cap)
	}
}

// inCensus reports whether an event is part of a heap sample, and whether to keep it. A
// heap sample that starts within the range is kept as a whole.
func (s *state) inCensus(ev eventlog.Event, within bool) (part, keep bool) {
	switch ev.(type) {
	case *eventlog.HeapSampleBegin, *eventlog.HeapBioSampleBegin:
		s.census = within
		return true, within
	case *eventlog.HeapSampleStack, *eventlog.HeapSampleString:
		return true, s.census
	case *eventlog.HeapSampleEnd:
		keep, s.census = s.census, false
		return true, keep
	}
	return false, false
}
