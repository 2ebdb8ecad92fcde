package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"ccagent/agent/invoker"
	"ccagent/agent/sink"
	"ccagent/eventlog"
	"ccagent/perf"
)

// The last pieces of processes wait for others to be closed with, but not for long, and not many.
func TestPiecesAreHeld(t *testing.T) {
	who, err := invoker.Find("")
	if err != nil {
		t.Fatal(err)
	}
	dir, made := t.TempDir(), 0
	piece := func() closing {
		t.Helper()
		made++
		log := sink.New(sink.Config{Who: who, Warn: func(line string) { t.Log(line) }})
		if err := log.Create(filepath.Join(dir, strconv.Itoa(made)), "", 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { log.Close() })
		log.Counts.Samples++
		return closing{log: log}
	}
	c := &closer{}
	c.more = sync.NewCond(&c.mu)
	expect := func(what string, queued, held int) {
		t.Helper()
		if len(c.queue) != queued || len(c.held) != held {
			t.Errorf("%s: %d pieces are to be closed, and %d are held; %d and %d expected", what, len(c.queue), len(c.held), queued, held)
		}
	}
	now := time.Now()
	first := piece()
	c.hold(first, now)
	c.again(now.Add(-time.Millisecond), time.Minute)
	expect("one is held, in a turn that began before", 0, 1)
	c.hold(piece(), now.Add(time.Second))
	c.again(now.Add(2*time.Second), time.Minute)
	expect("two are held", 0, 2)
	c.again(now.Add(time.Minute), time.Minute)
	expect("a minute later", 2, 0)
	if c.queue[0].log != first.log {
		t.Error("the first is not the first to be closed")
	}
	now = now.Add(time.Minute)
	c.hold(piece(), now)
	empty := piece()
	empty.log.Counts.Samples = 0
	c.add(empty)
	expect("an empty one is closed", 3, 1)
	c.add(piece())
	expect("another one is closed", 5, 0)
	c.hold(piece(), now)
	c.add(closing{done: make(chan struct{})})
	expect("a snapshot waits for them", 7, 0)
	for range maxHeld - 1 {
		c.hold(piece(), now)
	}
	expect("many are held", 7, maxHeld-1)
	c.hold(piece(), now)
	expect("one more", 7+maxHeld, 0)
}

// A piece ends when it is given to be closed, however much later that is done.
func TestPieceEndsWhenItIsCut(t *testing.T) {
	who, err := invoker.Find("")
	if err != nil {
		t.Fatal(err)
	}
	c := &closer{}
	c.more = sync.NewCond(&c.mu)
	path := filepath.Join(t.TempDir(), "piece")
	log := sink.New(sink.Config{Who: who, Warn: func(line string) { t.Log(line) }})
	if err := log.Create(path, "", 0); err != nil {
		t.Fatal(err)
	}
	log.Counts.Samples++
	c.hold(closing{log: log, reason: eventlog.EndExited}, time.Now())
	held := log.Time(perf.Monotonic())
	c.again(time.Now().Add(time.Minute), time.Minute)
	for begun := perf.Monotonic(); perf.Monotonic() == begun; {
	}
	if err := errors.Join(c.queue[0].end(), log.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := eventlog.NewReader(f)
	for r.Next() {
		if end, ok := r.Record().Event.(*eventlog.CaptureEnd); ok {
			if end.Reason != eventlog.EndExited || r.Record().Time > held {
				t.Errorf("it ended at %d ns for reason %v; it was held at %d ns", r.Record().Time, end.Reason, held)
			}
			return
		}
	}
	t.Errorf("it has no end: %v", r.Err())
}

// Pieces that are added together are closed once the last of them is there.
func TestPiecesAreClosedTogether(t *testing.T) {
	c := &closer{}
	c.more = sync.NewCond(&c.mu)
	failure := errors.New("a failure")
	err := c.together(func() error {
		c.add(closing{done: make(chan struct{})})
		c.again(time.Now(), time.Minute)
		if c.ready() {
			t.Error("the first is closed by itself")
		}
		c.add(closing{done: make(chan struct{})})
		return failure
	})
	if err != failure || !c.ready() || len(c.queue) != 2 {
		t.Errorf("%v, %d pieces, ready: %v", err, len(c.queue), c.ready())
	}
}
