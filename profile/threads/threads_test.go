package threads

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
)

// edge says that threads wait for an MVar, and whose stacks refer to it.
type edge struct {
	waiting, handlers, references []uint64
	torn                          bool // it had changed when it was read again
}

// graph builds a dump of threads 1 to n.
func graph(n uint64, edges ...edge) *Dump {
	d := &columns.Dump{}
	on := map[uint64]uint32{}
	for i, e := range edges {
		b := eventlog.Blocker{ID: uint32(i + 1), Kind: eventlog.BlockerMVar, Stood: !e.torn, Queue: e.waiting}
		for _, h := range e.handlers {
			b.Holders = append(b.Holders, eventlog.BlockerHolder{TSO: h, Handler: true})
		}
		for _, r := range e.references {
			b.Holders = append(b.Holders, eventlog.BlockerHolder{TSO: r})
		}
		for _, w := range e.waiting {
			on[w] = b.ID
		}
		d.Blockers = append(d.Blockers, b)
	}
	for id := n; id >= 1; id-- {
		t := eventlog.HaskellThread{TSO: id, On: on[id]}
		if t.On != 0 {
			t.State = eventlog.StateMVar
		}
		d.Threads = append(d.Threads, columns.DumpedThread{HaskellThread: t})
	}
	return Of(profile.New(&columns.Log{}), d)
}

func ids(list ...uint64) []uint64 { return list }

func TestDeadlocks(t *testing.T) {
	for name, c := range map[string]struct {
		g    *Dump
		want string
	}{
		"two":               {graph(2, edge{waiting: ids(1), handlers: ids(2)}, edge{waiting: ids(2), handlers: ids(1)}), "[1 2] true"},
		"three":             {graph(3, edge{waiting: ids(1), handlers: ids(3)}, edge{waiting: ids(3), handlers: ids(2)}, edge{waiting: ids(2), handlers: ids(1)}), "[1 3 2] true"},
		"one":               {graph(1, edge{waiting: ids(1), handlers: ids(1)}), "[1] true"},
		"by references":     {graph(2, edge{waiting: ids(1), references: ids(2)}, edge{waiting: ids(2), references: ids(1)}), "[1 2] false"},
		"another may wake":  {graph(3, edge{waiting: ids(1), references: ids(2, 3)}, edge{waiting: ids(2), references: ids(1)}), ""},
		"torn":              {graph(2, edge{waiting: ids(1), handlers: ids(2), torn: true}, edge{waiting: ids(2), handlers: ids(1)}), ""},
		"idle workers":      {graph(2, edge{waiting: ids(1, 2)}), ""},
		"chain":             {graph(3, edge{waiting: ids(1), handlers: ids(2)}, edge{waiting: ids(2), handlers: ids(3)}), ""},
		"one behind":        {graph(3, edge{waiting: ids(1, 3), handlers: ids(2)}, edge{waiting: ids(2), handlers: ids(1)}), "[1 2] true"},
		"holder goes ahead": {graph(2, edge{waiting: ids(1), handlers: ids(2), references: ids(1)}, edge{waiting: ids(2)}), ""},
	} {
		var got string
		for i, d := range c.g.Deadlocks {
			if i > 0 {
				got += " "
			}
			var list []uint64
			for _, n := range d.Threads {
				list = append(list, c.g.Threads[n].TSO)
			}
			got += fmt.Sprint(list, d.Certain)
		}
		if got != c.want {
			t.Errorf("%s: deadlocks %q, want %q", name, got, c.want)
		}
	}
}

// A long chain of threads is followed to its end, and no recursion goes as deep.
func TestLongChain(t *testing.T) {
	const n = 5_000
	var edges []edge
	for i := uint64(1); i < n; i++ {
		edges = append(edges, edge{waiting: ids(i), handlers: ids(i + 1)})
	}
	g := graph(n, edges...)
	last := slices.IndexFunc(g.Queues, func(q Queue) bool { return q.For[0] == n-1 })
	if len(g.Deadlocks) != 0 || last < 0 {
		t.Fatalf("%d deadlocks, queue for the last thread at %d", len(g.Deadlocks), last)
	}
	followed := 0
	for i := range g.Queues {
		q := &g.Queues[i]
		switch first := q.For[0]; {
		case q.Followed && q.Behind == first && q.Depth == first:
			followed++
		case q.Followed || q.Behind != 1 || q.Depth != 1:
			t.Fatalf("%d threads in chains of %d behind the %d. one; followed: %t", q.Behind, q.Depth, first, q.Followed)
		}
	}
	if followed == 0 || followed == len(g.Queues) {
		t.Errorf("%d of %d queues were followed", followed, len(g.Queues))
	}
	edges = append(edges, edge{waiting: ids(n), handlers: ids(1)})
	if g := graph(n, edges...); len(g.Deadlocks) != 1 || len(g.Deadlocks[0].Threads) != n {
		t.Errorf("the ring has %d deadlocks", len(g.Deadlocks))
	}
}

func TestQueues(t *testing.T) {
	g := graph(6, edge{waiting: ids(4, 2, 3), handlers: ids(5)}, edge{waiting: ids(5), handlers: ids(6)})
	if len(g.Queues) != 2 {
		t.Fatalf("%d queues", len(g.Queues))
	}
	whole, first := &g.Queues[0], &g.Queues[1] // by how many wait behind
	if whole.Behind != 4 || whole.Depth != 2 || !whole.Convoy() || first.Behind != 3 || !slices.Equal(first.Waiting, []int{3, 1, 2}) {
		t.Errorf("queues %+v, %+v", whole, first)
	}
}

// Threads that wait for each other are each behind the other once, and the chain ends where it would begin again.
func TestQueuesOfADeadlock(t *testing.T) {
	g := graph(3, edge{waiting: ids(1, 3), handlers: ids(2)}, edge{waiting: ids(2), handlers: ids(1)})
	for i := range g.Queues {
		if q := &g.Queues[i]; q.Behind != 3 || q.Depth != 2 || !q.Followed {
			t.Errorf("queue %+v, want 3 behind, in chains of 2", q)
		}
	}
}

// Threads that wait for what another's stack only refers to are no convoy: whether it has to do with their wait is not known.
func TestConvoyNeedsAHolder(t *testing.T) {
	for held, e := range map[bool]edge{true: {waiting: ids(1, 2, 3), handlers: ids(4)}, false: {waiting: ids(1, 2, 3), references: ids(4)}} {
		q := &graph(4, e).Queues[0]
		if q.Convoy() != held || len(q.For) != 1 || q.Behind != 3 {
			t.Errorf("held: %t, convoy: %t, %d behind, for %v", held, q.Convoy(), q.Behind, q.For)
		}
	}
}

// The shares of all threads of a capture are the whole.
func TestUsersAreTheWhole(t *testing.T) {
	l, err := columns.Load(bytes.NewReader(logtest.NBody().End()))
	if err != nil {
		t.Fatal(err)
	}
	u := UsersOf(profile.New(l), profile.Filter{})
	sum, samples := 0.0, uint64(0)
	for _, r := range u.Threads {
		sum += r.CPU.Share
		samples += r.CPU.Samples
		if r.CPU.Low > r.CPU.Share || r.CPU.High < r.CPU.Share {
			t.Errorf("thread %d: %v is not from %v to %v", r.TSO, r.CPU.Share, r.CPU.Low, r.CPU.High)
		}
	}
	if i, ok := l.EventNamed(u.CPU); !ok || samples != l.Events[i].Samples || sum < 0.999 || sum > 1.001 {
		t.Errorf("%d samples of %q, shares of %v together", samples, u.CPU, sum)
	}
}
