package dump

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"ccagent/agent/hold"
	"ccagent/heap/threads"
)

// frozen reads a process of which no thread runs, since its control group is frozen. Nothing is stopped: the kernel has put the registers of all threads away. The error
// is hold.ErrThawed if one has run meanwhile.
func (t *taker) frozen() (now *taken, err error) {
	t.moment.drop()
	begun := time.Now()
	unread := true
	err = hold.WhileFrozen(int(t.im.PID), func(s *hold.Still) error {
		unread = false
		list, err := t.list()
		if err != nil {
			return err
		}
		var held []heldThread
		all := make([]hold.Registers, 0, len(list))
		for _, os := range list {
			r, err := s.Stop(os.TID)
			if err != nil {
				continue // it has ended
			}
			all = append(all, r)
			if t.reader.Running(r.Base) && len(held) < mostHeld {
				held = append(held, heldThread{Registers: r, tid: os.TID, base: r.Base, thread: -1})
			}
		}
		g, err := t.reader.Read(t.generations)
		if errors.Is(err, threads.ErrMoving) {
			return ErrFrozenCollecting
		}
		if err != nil {
			return err
		}
		t.reader.Refresh(g)
		if !t.mutates(g) && slices.ContainsFunc(all, func(r hold.Registers) bool { return !r.Waits }) {
			return ErrFrozenCollecting
		}
		t.walkRunning(g, held)
		for i := range g.Threads {
			g.Threads[i].Stood = true
		}
		for i := range g.Objects {
			g.Objects[i].Stood = true
		}
		now = t.took(g, list, held, begun)
		return nil
	})
	if err != nil && unread && !errors.Is(err, hold.ErrThawed) {
		if now, runErr := t.running(); runErr == nil {
			t.d.Notes = append(t.d.Notes, fmt.Sprintf("the process is frozen, and what a thread does that ran is not known: %v", err))
			return now, nil
		}
	}
	return now, err
}
