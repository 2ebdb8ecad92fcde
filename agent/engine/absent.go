package engine

import "ccagent/agent/process"

// absent has pages of code brought into processes' page tables for the walker: those with info tables that it has not found there. It reads them beside the
// loop, since the kernel may have to read them from a disk.
type absent struct {
	asked chan place
}

type place struct {
	memory *process.Memory
	addr   uint64
}

// mostAbsent is how many places wait to be read; walks find again what is dropped.
const mostAbsent = 256

func readAbsent() *absent {
	a := &absent{make(chan place, mostAbsent)}
	go func() {
		for p := range a.asked {
			// What cannot be read is no code, or the process is gone.
			_, _ = p.memory.Word(p.addr)
		}
	}()
	return a
}

// close does not wait for what is being read: a page may be of a file system that does not answer.
func (a *absent) close() { close(a.asked) }

// bringIn asks for the places that walks have not found in memory since the last drain.
func (e *Engine) bringIn() error {
	return e.walker.Absent(func(pid uint32, addr uint64) {
		im := e.Processes.Images[pid]
		if im == nil {
			return
		}
		select {
		case e.absent.asked <- place{im.Memory, addr}:
		default:
		}
	})
}
