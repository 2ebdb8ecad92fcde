package cpu

import (
	"errors"
	"io/fs"

	"ccagent/agent/procfs"
	"ccagent/bpf"
	"ccagent/perf"
)

// thread is a kernel thread of the target.
type thread struct{ pid, tid uint32 }

// threadTimes are the CPU times of the target's threads by the kernel's own count, in ns.
type threadTimes struct {
	targets *bpf.Targets
	threads func() (tids []int, sure bool, err error) // of all processes
	known   map[thread]*threadTime
	total   uint64 // since start
	read    []bpf.ThreadTime
}

// threadTime is the CPU time of a thread.
type threadTime struct {
	ns    uint64 // so far
	spent uint64 // of it, until the last settlement
	ended bool   // nothing is to come
}

func newThreadTimes(t *bpf.Targets, threads func() ([]int, bool, error)) *threadTimes {
	return &threadTimes{targets: t, threads: threads, known: map[thread]*threadTime{}}
}

// start takes what threads have used so far as nothing.
func (t *threadTimes) start() error {
	if err := t.update(); err != nil {
		return err
	}
	for _, one := range t.known {
		one.spent = one.ns
	}
	t.total = 0
	return nil
}

// join takes what the threads of a process that are not known yet have used so far as nothing.
func (t *threadTimes) join(pid uint32) error {
	tids, err := perf.Threads(int(pid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, tid := range tids {
		of := thread{pid, uint32(tid)}
		if t.known[of] != nil {
			continue
		}
		if ns, _, err := procfs.ThreadTime(tid); err == nil { // it may have ended
			t.set(of, ns).spent = ns
		}
	}
	return err
}

// update reads the times of threads that run, or can.
func (t *threadTimes) update() (err error) {
	if !t.targets.HasTimes() {
		return t.updateFromProc()
	}
	if t.read, err = t.targets.Times(t.read[:0]); err != nil {
		return err
	}
	for _, r := range t.read {
		t.set(thread{r.Pid, r.Tid}, r.Ns)
	}
	return nil
}

// updateFromProc is update where the kernel's own list of threads cannot be asked for.
func (t *threadTimes) updateFromProc() error {
	tids, _, err := t.threads()
	if err != nil {
		return err
	}
	for _, tid := range tids {
		// A thread that has ended meanwhile is reported by its end.
		if ns, pid, err := procfs.ThreadTime(tid); err == nil {
			t.set(thread{uint32(pid), uint32(tid)}, ns)
		}
	}
	return nil
}

// consume takes the time of a thread that ends, or has ended.
func (t *threadTimes) consume(r *perf.Sample) {
	one := t.set(thread{r.Pid, r.Tid}, r.Period)
	one.ended = one.ended || r.Record == bpf.RecordThreadEnded
}

func (t *threadTimes) set(of thread, ns uint64) *threadTime {
	one := t.known[of]
	if one == nil || one.ended { // an ended one's number is another's by now
		one = &threadTime{}
		if old := t.known[of]; old != nil {
			one.spent = old.spent - old.ns // what is left of it is not lost
		}
		t.known[of] = one
	}
	one.ns = max(one.ns, ns)
	return one
}

// settle returns what each thread has used since it was called last, and forgets those that
// have ended.
func (t *threadTimes) settle() map[thread]uint64 {
	used := make(map[thread]uint64, len(t.known))
	for of, one := range t.known {
		if d := one.ns - one.spent; d != 0 {
			used[of] = d
			t.total += d
		}
		one.spent = one.ns
		if one.ended {
			delete(t.known, of)
		}
	}
	return used
}
