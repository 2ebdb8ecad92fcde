package daemon

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/engine"
)

// Where nothing changes the loop wakes once a second; a process that is new is looked at more often, for two seconds.
func TestTurnsAreRare(t *testing.T) {
	begun := time.Now()
	d := &Daemon{engine: &engine.Engine{}}
	turns := func(from, to time.Duration) (n int) {
		for at := begun.Add(from); at.Before(begun.Add(to)); at = at.Add(d.pause(at)) {
			n++
		}
		return n
	}
	if n := turns(0, time.Minute); n != 60 {
		t.Errorf("the loop has %d turns in a minute in which nothing changes", n)
	}
	d.taken = begun
	if n := turns(0, time.Minute); n != 20+58 {
		t.Errorf("the loop has %d turns in a minute that begins with a new process", n)
	}
}

// Changes wake the loop once before a turn, however many there are; those that come during the turn wake it after it.
func TestTurnsTellChanges(t *testing.T) {
	var fds, writers []int
	for range 2 {
		var pipe [2]int
		if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(pipe[0]); unix.Close(pipe[1]) })
		fds, writers = append(fds, pipe[0]), append(writers, pipe[1])
	}
	turn, err := newTurns(t.Context(), fds)
	if err != nil {
		t.Fatal(err)
	}
	change := func(of int) {
		t.Helper()
		if _, err := unix.Write(writers[of], []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		change(i % 2)
		<-turn.changed
		turn.hasten(time.Now())
		change(0)
		change(1)
		select {
		case <-turn.changed:
			t.Error("a change is told twice")
		default:
		}
		turn.next(t.Context(), time.Now(), time.Hour)
		<-turn.changed // what came meanwhile
		turn.hasten(time.Now())
		turn.next(t.Context(), time.Now(), time.Hour)
		for _, fd := range fds { // nothing is left that a later turn would find
			for b := make([]byte, 16); ; {
				if n, err := unix.Read(fd, b); n <= 0 || err != nil {
					break
				}
			}
		}
	}
}
