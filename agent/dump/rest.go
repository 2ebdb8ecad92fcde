package dump

import (
	"slices"

	"ccagent/agent/procfs"
)

// rest is what the OS threads of a process did before some of them were stopped. The others have changed nothing if they
// have slept since.
type rest struct {
	pid     int
	threads map[int]uint64 // those that slept, by id, with how often they had run
	awake   []int
}

// newRest reads how often each thread has run before it reads whether it sleeps: one that wakes in between has run once more when
// slept looks.
func newRest(pid int) (rest, error) {
	r := rest{pid: pid, threads: map[int]uint64{}}
	list, err := procfs.Threads(pid)
	if err != nil {
		return r, err
	}
	ran := make(map[int]uint64, len(list))
	for _, os := range list {
		if n, ok := procfs.Timeslices(pid, os.TID); ok {
			ran[os.TID] = n
		}
	}
	if list, err = procfs.Threads(pid); err != nil {
		return r, err
	}
	for _, os := range list {
		if n, ok := ran[os.TID]; ok && (os.State == 'S' || os.State == 'D') {
			r.threads[os.TID] = n
		} else {
			r.awake = append(r.awake, os.TID)
		}
	}
	return r, nil
}

// slept reports whether all have slept since that were not held. A thread that has begun since is not known, but one
// of these has started it.
func (r rest) slept(held []heldThread) bool {
	for _, tid := range r.awake {
		if !slices.ContainsFunc(held, func(h heldThread) bool { return h.tid == tid }) {
			return false
		}
	}
	for tid, before := range r.threads {
		if now, ok := procfs.Timeslices(r.pid, tid); !ok || now != before {
			return false
		}
	}
	return true
}
