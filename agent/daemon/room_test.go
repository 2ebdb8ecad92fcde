package daemon

import (
	"errors"
	"strings"
	"testing"

	"ccagent/agent/discovery"
	"ccagent/agent/process"
	"ccagent/internal/fair"
)

// One user's processes have half of the room at most, whatever they are, and those that have ended none.
func TestProcessesOfOneUserLeaveOthersRoom(t *testing.T) {
	d := &Daemon{procs: map[uint32]*proc{}}
	start := func(user uint32, n int) {
		for range n {
			pid := uint32(len(d.procs) + 1)
			d.procs[pid] = &proc{Process: discovery.Process{PID: pid, UID: user}, image: process.NewImage(pid, pid)}
		}
	}
	room := func(user uint32, want string) {
		t.Helper()
		err := d.room(user)
		if (err == nil) != (want == "") || err != nil && (!errors.Is(err, errNoRoom) || !strings.Contains(err.Error(), want)) {
			t.Errorf("with %d processes user %d is told %v, want %q", len(d.procs), user, err, want)
		}
	}
	start(1, maxProcs/2-1)
	room(1, "")
	start(1, 1)
	room(1, "512 of this user")
	room(2, "")
	start(2, maxProcs/2)
	room(3, "already: 1024")
	d.procs[1].image.Exited = true
	room(1, "")
	room(2, "512 of this user")
	room(3, "")
}

// Forks of one user's programs have half of what is remembered at most, and what becomes of a fork makes room.
func TestForksOfOneUserLeaveOthersRoom(t *testing.T) {
	fs := newForks()
	of := func(user uint32) fork { return fork{parent: discovery.Process{UID: user}} }
	for pid := range uint32(maxForks / 2) {
		if err := fs.add(pid, of(1)); err != nil {
			t.Fatalf("fork %d: %v", pid, err)
		}
	}
	if err := fs.add(maxForks, of(1)); !errors.Is(err, fair.ErrShare) {
		t.Errorf("one more of the same user: %v", err)
	}
	if err := fs.add(maxForks+1, of(2)); err != nil {
		t.Errorf("one of another user: %v", err)
	}
	if err := fs.add(5, of(1)); err != nil {
		t.Errorf("one whose process id is another's by now: %v", err)
	}
	if f, known := fs.remove(7); !known || f.parent.UID != 1 {
		t.Errorf("fork 7 is %+v, %v", f, known)
	}
	if _, known := fs.remove(7); known {
		t.Error("fork 7 is known twice")
	}
	if err := fs.add(maxForks, of(1)); err != nil {
		t.Errorf("where another is gone: %v", err)
	}
}
