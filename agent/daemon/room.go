package daemon

import (
	"errors"
	"fmt"

	"ccagent/bpf"
	"ccagent/internal/fair"
)

// maxProcs bounds the processes that are sampled at a time, of which one user may have half: who starts programs without end leaves
// others their profiles.
const maxProcs = bpf.MaxProcesses

// errNoRoom is why a process is not sampled that was found when there were too many.
var errNoRoom = errors.New("too many processes are sampled already")

// room returns why a process of a user cannot be sampled beside those that are, nil if it can. Those that have ended do
// not count, though their logs have not ended yet.
func (d *Daemon) room(user uint32) error {
	all, own := 0, 0
	for _, p := range d.procs {
		switch {
		case p.image.Exited:
			continue
		case p.UID == user:
			own++
		}
		all++
	}
	switch err := fair.Room(maxProcs, all, own, 1); {
	case errors.Is(err, fair.ErrShare):
		return fmt.Errorf("%w: %d of this user, who may have half of the %d of all users", errNoRoom, own, maxProcs)
	case err != nil:
		return fmt.Errorf("%w: %d", errNoRoom, all)
	}
	return nil
}

// forks are the processes that were forked by those that are sampled, and have not been sampled themselves. They
// are bounded, and one user has at most half of them.
type forks struct {
	of     map[uint32]fork
	shares *fair.Shares
}

// maxForks bounds the forks that are remembered. The walker's table of what is sampled has room for twice as many.
const maxForks = 1 << 14

func newForks() forks { return forks{map[uint32]fork{}, fair.Of(maxForks)} }

func (fs *forks) add(pid uint32, f fork) error {
	fs.remove(pid)
	if err := fs.shares.Take(f.parent.UID, 1); err != nil {
		return err
	}
	fs.of[pid] = f
	return nil
}

// remove forgets a fork, and returns what was known of it.
func (fs *forks) remove(pid uint32) (f fork, known bool) {
	if f, known = fs.of[pid]; known {
		delete(fs.of, pid)
		fs.shares.Give(f.parent.UID, 1)
	}
	return f, known
}
