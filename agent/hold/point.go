package hold

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"ccagent/agent/procfs"
	"ccagent/agent/uprobe"
	"ccagent/bpf"
)

// Point is an instruction at which the first thread that executes it is held. It holds
// only threads that the caller traces.
type Point struct {
	Signal unix.Signal // with which threads are held

	program *bpf.Hold
	probes  []*uprobe.Probes
}

// Gate is the first instruction of a function that is called before a point is reached. A thread
// is held only if the function's last call had a first argument of which the lower 32 bits are at
// least Least.
type Gate struct {
	Offset uint64 // in the point's file
	Least  uint32
	// Hasten, if it is not nil, is called on the OS thread that waits for the process when all is prepared, and what it
	// returns when the process is not waited for any more: the process stands until that thread has its turn.
	Hasten func() (undo func())
}

// NewPoint puts a probe at an offset of a file, for one process. The file is what a path
// leads to, such as /proc/PID/exe.
func NewPoint(pid int, path string, offset uint64) (*Point, error) {
	signal, err := SignalFor(pid)
	if err != nil {
		return nil, err
	}
	return newPoint(pid, path, offset, nil, signal)
}

func newPoint(pid int, path string, offset uint64, gate *Gate, signal unix.Signal) (*Point, error) {
	least := uint32(0)
	if gate != nil {
		least = gate.Least
	}
	// By links for many probes, where the kernel has them: those for one take CAP_SYS_ADMIN, which the daemon's service does not have.
	multi := uprobe.Multi()
	program, err := bpf.LoadHold(signal, gate != nil, least, multi)
	if err != nil {
		return nil, err
	}
	p := &Point{Signal: signal, program: program}
	exe, err := link.OpenExecutable(path)
	put := func(program *ebpf.Program, offset uint64) {
		if err != nil {
			return
		}
		var probes *uprobe.Probes
		if probes, err = uprobe.Put(exe, uint32(pid), program, multi, uprobe.Site{Offset: offset}); err == nil {
			p.probes = append(p.probes, probes)
		}
	}
	put(program.Program(), offset)
	if gate != nil {
		put(program.Gate(), gate.Offset)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("put a probe where process %d is to be held: %w", pid, err), p.Close())
	}
	return p, nil
}

// Holds reports whether a traced thread that has stopped by a signal does so since it came
// to the point.
func (p *Point) Holds(tid int, signal unix.Signal) (bool, error) {
	if signal != p.Signal {
		return false, nil
	}
	held, _, err := p.program.Thread()
	return err == nil && held == tid, err
}

// Since is when the thread came that is held, by CLOCK_MONOTONIC in ns; 0 if none did.
func (p *Point) Since() uint64 {
	_, since, _ := p.program.Thread()
	return since
}

// Close takes the probe out, for which the kernel takes a tenth of a second.
func (p *Point) Close() (err error) {
	for _, l := range p.probes {
		err = errors.Join(err, l.Close())
	}
	return errors.Join(err, p.program.Close())
}

// ignored are the signals that are ignored by default and have no other effect.
var ignored = []unix.Signal{unix.SIGURG, unix.SIGWINCH}

// A thread that starts another blocks all signals meanwhile: GHC's run-time system and pthreads
// do so. SignalFor asks again, so often and so long apart.
const (
	signalTries = 1000
	signalPause = 10 * time.Millisecond
)

// SignalFor chooses a signal that the process neither handles nor blocks.
func SignalFor(pid int) (unix.Signal, error) {
	for range signalTries {
		s, err := procfs.ReadStatus(pid)
		if err != nil {
			return 0, err
		}
		for _, signal := range ignored {
			if bit := uint64(1) << (signal - 1); s.CaughtSignals&bit == 0 && s.BlockedSignals&bit == 0 {
				return signal, nil
			}
		}
		time.Sleep(signalPause)
	}
	return 0, fmt.Errorf("hold process %d: it handles or blocks both SIGURG and SIGWINCH, and there is no other signal that would leave it alone", pid)
}

// TracedError reports that a process cannot be traced, because another process traces it.
type TracedError struct {
	PID    int
	Tracer int
	Comm   string // of the tracer
}

func (e *TracedError) Error() string {
	if e.Tracer == os.Getpid() { // left to itself after a wait in which none of its threads stopped
		return fmt.Sprintf("process %d does not stop for ccagent, which has asked it to: it is frozen (thaw its control group), or is held for another census", e.PID)
	}
	return fmt.Sprintf("process %d is traced by %q (process %d) already, and a process has no more than one tracer: end that first", e.PID, e.Comm, e.Tracer)
}

// Explain returns the reason for which ptrace refuses a process: a *TracedError where
// another traces it, the error itself otherwise.
func Explain(pid int, err error) error {
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	s, readErr := procfs.ReadStatus(pid)
	if readErr != nil || s.Tracer == 0 {
		return err
	}
	tracer := s.Tracer // the thread that does
	if t, err := procfs.ReadStatus(tracer); err == nil {
		tracer = t.TGID
	}
	return &TracedError{PID: pid, Tracer: tracer, Comm: procfs.Comm(tracer)}
}
