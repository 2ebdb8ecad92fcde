package dump

import (
	"io"
	"runtime"

	"ccagent/agent/procfs"
	"ccagent/heap/threads"
)

// pthreadTID is where the C library (glibc) has a thread's id behind its pthread_t: behind what precedes a
// list node, the control block on x86-64 and 24 words on arm64. What is read there is believed if it is a
// thread of the process.
var pthreadTID = map[string]uint64{"amd64": 0x2d0, "arm64": 0xd0}[runtime.GOARCH]

// osThreads says for which Haskell thread each OS thread works.
func osThreads(memory io.ReaderAt, g *threads.Reading, list []procfs.Thread, held []heldThread) []OSThread {
	at := make(map[int]int, len(list))
	out := make([]OSThread, len(list))
	for i, os := range list {
		out[i] = OSThread{Thread: os, TSO: -1}
		at[os.TID] = i
	}
	set := func(tid int, role Role, thread int) {
		if i, ok := at[tid]; ok && thread >= 0 && out[i].Role == NoRole {
			out[i].Role, out[i].TSO = role, thread
		}
	}
	for _, h := range held {
		set(h.tid, Runs, h.thread)
	}
	for i := range g.Capabilities {
		c := &g.Capabilities[i]
		set(tidOf(memory, c.OSID), Runs, g.Thread(c.Current))
	}
	for _, bound := range []bool{false, true} { // a bound thread's OS thread may be in a call
		for _, call := range g.Calls {
			if n := g.Thread(call.TSO); call.Bound == bound {
				role := Calls
				if bound {
					role = BoundTo
				}
				set(tidOf(memory, call.OSID), role, n)
			}
		}
	}
	return out
}

// tidOf reads the thread's id of a pthread_t; 0 if that cannot be read.
func tidOf(memory io.ReaderAt, pthread uint64) int {
	if pthread == 0 || pthread >= 1<<56 {
		return 0
	}
	var b [4]byte
	if _, err := memory.ReadAt(b[:], int64(pthread+pthreadTID)); err != nil {
		return 0
	}
	return int(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)
}
