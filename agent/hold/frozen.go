package hold

import (
	"errors"
	"fmt"
	"os"
	"time"

	"ccagent/agent/procfs"
	"ccagent/bpf"
)

// ErrThawed is returned where a process that was frozen is not any more, or may have run in between.
var ErrThawed = errors.New("the process was frozen, and has been thawed")

// WhileFrozen is Stilled for a process that its control group has frozen (procfs.Frozen). Such a thread stops for no
// tracer with version 1, takes no signal with version 2, and need not: the kernel has put its registers away, and a BPF program reads
// them. Nothing is done to the process. The error is ErrThawed, whatever f's is, unless none of the threads has run while f did.
func WhileFrozen(pid int, f func(*Still) error) error {
	var traced *TracedError
	if err := untraced(pid); errors.As(err, &traced) && traced.Tracer != os.Getpid() {
		return err // what its tracer does with it is not for others; this process may have been left with it as UnlessStuck says
	}
	program, err := bpf.LoadRegisters(uint32(pid))
	if err != nil {
		return fmt.Errorf("read process %d, which is frozen: %w", pid, err)
	}
	defer program.Close()
	threads, err := standing(program)
	if err != nil {
		return err
	}
	// That no thread has run from then on is found out below. Here all were where the kernel freezes them.
	if !procfs.Frozen(pid) {
		return ErrThawed
	}
	err = f(&Still{pid: pid, frozen: threads, stopped: time.Now()})
	after, afterErr := standing(program)
	if afterErr != nil {
		return afterErr
	}
	if !sameSwitches(threads, after) {
		return ErrThawed
	}
	return err
}

// standing reads the registers of a process's threads, by thread id. The error is ErrThawed if one is on a CPU.
func standing(program *bpf.Registers) (map[int]bpf.ThreadRegisters, error) {
	list, err := program.Read()
	if err != nil {
		return nil, err
	}
	all := make(map[int]bpf.ThreadRegisters, len(list))
	for _, t := range list {
		if t.OnCpu != 0 {
			return nil, ErrThawed
		}
		all[int(t.Tid)] = t
	}
	return all, nil
}

// sameSwitches reports whether none of the threads has run between two moments at which none was on a CPU: one that had would have
// left it again.
func sameSwitches(before, after map[int]bpf.ThreadRegisters) bool {
	if len(before) != len(after) {
		return false
	}
	for tid, b := range before {
		if a, there := after[tid]; !there || a.Switches != b.Switches {
			return false
		}
	}
	return true
}
