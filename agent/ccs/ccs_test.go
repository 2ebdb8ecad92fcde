package ccs

import (
	"fmt"
	"strings"
	"testing"

	"ccagent/agent/process"
	"ccagent/bpf"
	"ccagent/eventlog"
)

// centreLog takes what is written, as "id parent problem".
type centreLog struct {
	centres, stacks []string
}

func (l *centreLog) emit(e eventlog.Event) error {
	switch e := e.(type) {
	case *eventlog.CentreDef:
		l.centres = append(l.centres, fmt.Sprint(e.ID, " ", e.Module, ".", e.Label))
	case *eventlog.CentreStack:
		l.stacks = append(l.stacks, fmt.Sprint(e.ID, " ", e.Parent, " ", e.Centre, " ", e.Problem))
	}
	return nil
}

func (l *centreLog) want(t *testing.T, when string, stacks ...string) {
	t.Helper()
	if got, want := strings.Join(l.stacks, "; "), strings.Join(stacks, "; "); got != want {
		t.Errorf("%s: stacks %q, want %q", when, got, want)
	}
}

func use(t *testing.T, cs *stacks, im *process.Image, address uint64, l *centreLog) uint32 {
	t.Helper()
	id, err := cs.use(im, address, l.emit)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func send(t *testing.T, cs *stacks, im *process.Image, r bpf.CCSRecord, l *centreLog) {
	t.Helper()
	if err := cs.complete(im, &r, l.emit); err != nil {
		t.Fatal(err)
	}
}

// Stacks are written when a sample has used them and their record has come,
// whichever is first, once in each log, with all that is below.
func TestCentreStacksAreWrittenOnce(t *testing.T) {
	cs, l, im := newStacks(), &centreLog{}, &process.Image{Incarnation: 1, Exited: true}
	if id := use(t, cs, im, 0, l); id != 0 {
		t.Errorf("no stack has id %d", id)
	}
	top := use(t, cs, im, 0x30, l)
	l.want(t, "used, not sent")
	send(t, cs, im, bpf.CCSRecord{Ccs: 0x10, Cc: 1}, l)
	send(t, cs, im, bpf.CCSRecord{Ccs: 0x20, Prev: 0x10, Cc: 2}, l)
	l.want(t, "sent, not used")
	send(t, cs, im, bpf.CCSRecord{Ccs: 0x30, Prev: 0x20, Cc: 3}, l)
	whole := []string{"1 3 1 whole", "3 2 1 whole", "2 0 1 whole"}
	l.want(t, "sent and used", whole...)
	if top != 1 || use(t, cs, im, 0x30, l) != 1 || use(t, cs, im, 0x10, l) != 2 {
		t.Error("ids are not stable")
	}
	send(t, cs, im, bpf.CCSRecord{Ccs: 0x30, Prev: 0x10, Cc: 3}, l)
	l.want(t, "sent again", whole...)
	// Addresses of another program image mean something else.
	if other := use(t, cs, &process.Image{Incarnation: 2}, 0x30, l); other == top {
		t.Errorf("stack %d of two images", other)
	}
	cs.forgetWritten()
	*l = centreLog{}
	use(t, cs, im, 0x20, l)
	l.want(t, "next log", "3 2 1 whole", "2 0 1 whole")
	if len(l.centres) != 1 { // all have no name that could be read
		t.Errorf("centres %q", l.centres)
	}
}

// A program can make its stacks a circle, and as many as it likes.
func TestCentreStacksAreBounded(t *testing.T) {
	cs, l, im := newStacks(), &centreLog{}, &process.Image{Incarnation: 1, Exited: true}
	send(t, cs, im, bpf.CCSRecord{Ccs: 0x10, Prev: 0x20}, l)
	send(t, cs, im, bpf.CCSRecord{Ccs: 0x20, Prev: 0x10, Why: uint32(bpf.CCSImplausible)}, l)
	use(t, cs, im, 0x10, l)
	l.want(t, "circle", "1 2 0 whole", "2 1 0 implausible")
	for i := range uint64(maxStacks + 10) {
		send(t, cs, im, bpf.CCSRecord{Ccs: 0x1000 + 8*i}, l)
	}
	if len(cs.stacks) != maxStacks || use(t, cs, im, 1<<40, l) != 0 {
		t.Errorf("%d stacks are held", len(cs.stacks))
	}
	send(t, cs, im, bpf.CCSRecord{Ccs: 0x1000, Prev: 1 << 40}, l)
}
