package threads

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// Thread is a thread of a dump.
type Thread struct {
	*columns.DumpedThread
	Blocker *eventlog.Blocker // what it waits for; nil for nothing that is known
	// For are the threads that it waits for, as indices in Dump.Threads.
	For []int
	// Holds is set if those in For were seen to hold what it waits for, by more than a reference.
	Holds bool
}

// Dump is a dump with its graph.
type Dump struct {
	*columns.Dump
	p         *profile.Profile
	Threads   []Thread // by id
	Groups    []Group
	Deadlocks []Deadlock
	Queues    []Queue
	byID      map[uint64]int
}

// Group is the threads that do the same: of one state and one stack.
type Group struct {
	State   eventlog.ThreadState
	Threads []int // in the order of their ids
}

// Deadlock is a cycle of threads, or several that are entangled. Each waits for others of them.
type Deadlock struct {
	Threads []int // in the order in which they wait for each other, if they are one cycle
	// Certain is set if each was seen to hold what another waits for. Otherwise stacks refer to it.
	Certain bool
}

// Queue is threads that wait for one object, directly, or for a thread that does.
type Queue struct {
	Blocker *eventlog.Blocker
	Waiting []int // directly; of an MVar in the order of its queue
	Behind  int   // all that wait for it: those in Waiting, and who waits for one of them
	For     []int // who is waited for; see Thread.For
	Holds   bool  // see Thread.Holds
	Depth   int   // of the longest chain of threads, from the last that waits to who is waited for
	// Followed is false where it is not known who waits for those in Waiting: there were too many. Behind has only these then, and Depth is 1.
	Followed bool
}

// convoy is the number of waiting threads from which on a queue is called a convoy.
const convoy = 3

// Convoy reports whether many wait for threads that were seen to hold what they wait for: one whose stack only refers
// to it may have nothing to do with the wait.
func (q *Queue) Convoy() bool { return q.Holds && q.Behind >= convoy }

// Of builds the graph of a dump of the profile's log.
func Of(p *profile.Profile, d *columns.Dump) *Dump {
	g := &Dump{Dump: d, p: p, byID: make(map[uint64]int, len(d.Threads))}
	for i := range d.Threads {
		g.Threads = append(g.Threads, Thread{DumpedThread: &d.Threads[i]})
	}
	slices.SortStableFunc(g.Threads, func(a, b Thread) int { return cmp.Compare(a.TSO, b.TSO) })
	for i := range g.Threads {
		g.byID[g.Threads[i].TSO] = i
	}
	blockers := make(map[uint32]*eventlog.Blocker, len(d.Blockers))
	for i := range d.Blockers {
		blockers[d.Blockers[i].ID] = &d.Blockers[i]
	}
	for i := range g.Threads {
		t := &g.Threads[i]
		if t.Blocker = blockers[t.On]; t.Blocker != nil {
			t.For, t.Holds = g.waitsFor(i)
		}
	}
	g.group()
	g.deadlocks()
	g.queues()
	return g
}

// About is the dump with what concerns the threads with some ids alone: its groups are of these, and it
// has the deadlocks and queues that one of them is in, and the OS threads that run them. Threads
// has all, since what they wait for refers to others.
func (g *Dump) About(ids []uint64) *Dump {
	about := func(i int) bool { return slices.Contains(ids, g.Threads[i].TSO) }
	out, d := *g, *g.Dump
	out.Dump, d.OS = &d, nil
	out.Groups, out.Deadlocks, out.Queues = nil, nil, nil
	for _, group := range g.Groups {
		group.Threads = slices.DeleteFunc(slices.Clone(group.Threads), func(i int) bool { return !about(i) })
		if len(group.Threads) > 0 {
			out.Groups = append(out.Groups, group)
		}
	}
	for _, dead := range g.Deadlocks {
		if slices.ContainsFunc(dead.Threads, about) {
			out.Deadlocks = append(out.Deadlocks, dead)
		}
	}
	for i := range g.Queues {
		if q := &g.Queues[i]; slices.ContainsFunc(q.Waiting, about) || slices.ContainsFunc(q.For, about) {
			out.Queues = append(out.Queues, *q)
		}
	}
	for _, o := range g.OS {
		if o.TSO != 0 && slices.Contains(ids, o.TSO) {
			d.OS = append(d.OS, o)
		}
	}
	return &out
}

// Index is the place of a thread's id in Threads; −1 if it is not there.
func (g *Dump) Index(id uint64) int {
	if i, ok := g.byID[id]; ok {
		return i
	}
	return -1
}

// waitsFor lists the threads that can end a thread's wait.
func (g *Dump) waitsFor(i int) (threads []int, holds bool) {
	b := g.Threads[i].Blocker
	if b.Kind != eventlog.BlockerMVar {
		if n := g.Index(b.Owner); b.Owner != 0 && n >= 0 {
			return []int{n}, true
		}
		return nil, false
	}
	var handlers, others, waiting []int
	for _, h := range b.Holders {
		n := g.Index(h.TSO)
		switch {
		case n < 0:
		case h.Handler && !b.Full && g.Threads[n].On == b.ID:
			waiting = append(waiting, n)
		case h.Handler && !b.Full:
			handlers = append(handlers, n)
		default:
			others = append(others, n)
		}
	}
	switch {
	case len(handlers) > 0:
		return handlers, true
	case len(others) > 0:
		return others, false
	case len(waiting) == 1:
		return waiting, true // it took the value, and wants to take it again
	}
	return nil, false
}

// group puts threads of one state and stack together. Larger groups come first.
func (g *Dump) group() {
	type key struct {
		state eventlog.ThreadState
		node  uint32
		stop  eventlog.StopReason
	}
	at := map[key]int{}
	for i := range g.Threads {
		t := &g.Threads[i]
		k := key{t.State, t.Node, t.Stop}
		n, ok := at[k]
		if !ok {
			n = len(g.Groups)
			at[k] = n
			g.Groups = append(g.Groups, Group{State: t.State})
		}
		g.Groups[n].Threads = append(g.Groups[n].Threads, i)
	}
	slices.SortStableFunc(g.Groups, func(a, b Group) int {
		ended := func(s eventlog.ThreadState) int {
			if s == eventlog.StateFinished || s == eventlog.StateDied {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(ended(a.State), ended(b.State)), cmp.Compare(len(b.Threads), len(a.Threads)))
	})
}

// stuck reports whether a thread's wait and who could end it are known, and held at one moment.
func (t *Thread) stuck() bool {
	return t.Blocker != nil && t.Blocker.Stood && !t.Moved && len(t.For) > 0
}

// deadlocks finds the threads that wait for none but each other.
func (g *Dump) deadlocks() {
	in := make([]bool, len(g.Threads))
	waiters := make([][]int, len(g.Threads)) // the edges' other direction
	var free []int
	for i := range g.Threads {
		t := &g.Threads[i]
		in[i] = t.stuck()
		for _, n := range t.For {
			waiters[n] = append(waiters[n], i)
		}
	}
	for i := range in {
		if !in[i] {
			free = append(free, i)
		}
	}
	for len(free) > 0 {
		i := free[len(free)-1]
		free = free[:len(free)-1]
		for _, w := range waiters[i] {
			if in[w] {
				in[w] = false
				free = append(free, w)
			}
		}
	}
	for _, c := range components(len(g.Threads), func(i int) []int {
		if !in[i] {
			return nil
		}
		return g.Threads[i].For
	}) {
		if !in[c[0]] || len(c) == 1 && !slices.Contains(g.Threads[c[0]].For, c[0]) {
			continue
		}
		g.Deadlocks = append(g.Deadlocks, g.deadlock(c))
	}
	slices.SortFunc(g.Deadlocks, func(a, b Deadlock) int { return cmp.Compare(a.Threads[0], b.Threads[0]) })
}

// deadlock orders a cycle, from the thread with the lowest id on.
func (g *Dump) deadlock(members []int) Deadlock {
	slices.Sort(members)
	d := Deadlock{Certain: true}
	for _, i := range members {
		d.Certain = d.Certain && g.Threads[i].Holds
	}
	seen := make(map[int]bool, len(members))
	for at := members[0]; !seen[at]; {
		seen[at] = true
		d.Threads = append(d.Threads, at)
		for _, n := range g.Threads[at].For {
			if _, member := slices.BinarySearch(members, n); member && !seen[n] {
				at = n
				break
			}
		}
	}
	for _, i := range members {
		if !seen[i] {
			d.Threads = append(d.Threads, i)
		}
	}
	return d
}

// components gives the strongly connected components of a graph (Tarjan's algorithm, with a stack
// of its own: chains may be as long as there are threads).
func components(n int, next func(int) []int) (out [][]int) {
	index, low, on := make([]int, n), make([]int, n), make([]bool, n)
	var stack []int
	type call struct{ at, edge int }
	count := 0
	for root := range n {
		if index[root] != 0 {
			continue
		}
		calls := []call{{root, 0}}
		for len(calls) > 0 {
			c := &calls[len(calls)-1]
			if c.edge == 0 && index[c.at] == 0 {
				count++
				index[c.at], low[c.at], on[c.at] = count, count, true
				stack = append(stack, c.at)
			}
			edges := next(c.at)
			if c.edge < len(edges) {
				to := edges[c.edge]
				c.edge++
				switch {
				case index[to] == 0:
					calls = append(calls, call{to, 0})
				case on[to]:
					low[c.at] = min(low[c.at], index[to])
				}
				continue
			}
			at := c.at
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				up := calls[len(calls)-1].at
				low[up] = min(low[up], low[at])
			}
			if low[at] != index[at] {
				continue
			}
			var component []int
			for {
				last := stack[len(stack)-1]
				stack, on[last] = stack[:len(stack)-1], false
				component = append(component, last)
				if last == at {
					break
				}
			}
			out = append(out, component)
		}
	}
	return out
}

// queues lists what threads wait for, with most waiting behind it first.
func (g *Dump) queues() {
	at := map[uint32]int{}
	for i := range g.Threads {
		t := &g.Threads[i]
		if t.Blocker == nil || t.Blocker.Kind == eventlog.BlockerSTM {
			continue
		}
		n, ok := at[t.On]
		if !ok {
			n = len(g.Queues)
			at[t.On] = n
			g.Queues = append(g.Queues, Queue{Blocker: t.Blocker, For: t.For, Holds: t.Holds})
		}
		g.Queues[n].Waiting = append(g.Queues[n].Waiting, i)
	}
	f := follower{waiters: make([][]int, len(g.Threads)), seen: make([]int, len(g.Threads)), left: maxFollowed}
	for i := range g.Threads {
		for _, n := range g.Threads[i].For {
			f.waiters[n] = append(f.waiters[n], i)
		}
	}
	slices.SortStableFunc(g.Queues, func(a, b Queue) int { return cmp.Compare(len(b.Waiting), len(a.Waiting)) })
	for n := range g.Queues {
		q := &g.Queues[n]
		place := make(map[uint64]int, len(q.Blocker.Queue))
		for k, id := range q.Blocker.Queue {
			place[id] = k + 1
		}
		slices.SortStableFunc(q.Waiting, func(a, b int) int {
			x, y := place[g.Threads[a].TSO], place[g.Threads[b].TSO]
			if x == 0 || y == 0 {
				return 0
			}
			return cmp.Compare(x, y)
		})
		q.Behind, q.Depth, q.Followed = f.behind(q.Waiting)
	}
	slices.SortStableFunc(g.Queues, func(a, b Queue) int { return cmp.Compare(b.Behind, a.Behind) })
}

// maxFollowed bounds the threads that are looked at behind those that wait in queues, for all queues together: in a long chain each has
// all others behind it.
const maxFollowed = 1 << 22

// follower follows queues to the threads behind them.
type follower struct {
	waiters [][]int // by thread: who waits for it
	seen    []int   // by thread: in which turn it was seen last
	turn    int
	left    int // threads that may still be looked at
}

// behind counts some threads that wait and those that wait for them, also through others, and how long the longest chain is. Not ok: there are too many.
func (f *follower) behind(waiting []int) (count, depth int, ok bool) {
	f.turn++
	layer := waiting
	for len(layer) > 0 {
		var next []int
		some := false
		if f.left -= len(layer); f.left < 0 {
			return len(waiting), 1, false
		}
		for _, i := range layer {
			if f.seen[i] == f.turn {
				continue // threads that wait for each other
			}
			f.seen[i], some = f.turn, true
			count++
			next = append(next, f.waiters[i]...)
		}
		if some {
			depth++
		}
		layer = next
	}
	return count, depth, true
}

// Frame is a frame of a thread's stack.
type Frame struct {
	Name, Module string
	File         string // empty if it is not known
	Line         uint32 // of the call that the frame returns from, as near as source notes say
}

// Evaluates is the code that runs for a black hole; false if it is not known.
func (g *Dump) Evaluates(b *eventlog.Blocker) (Frame, bool) {
	if b.Kind != eventlog.BlockerBlackHole || b.Node == 0 {
		return Frame{}, false
	}
	f := g.frame(b.Node)
	return f, f.Name != ""
}

func (g *Dump) frame(node uint32) Frame { return frameOf(g.p, node) }

// frameOf is what a node of code shows.
func frameOf(p *profile.Profile, node uint32) Frame {
	place := columns.PlaceID(p.Nodes.Place[node])
	of := p.FrameOf(place)
	f := Frame{Name: of.Name, Module: of.Module}
	if file, line := p.Position(place); file != 0 {
		f.File, f.Line = p.Symbols.Files[file].Path, line
	}
	return f
}

// Stack returns the frames of a thread, as StackOf does.
func (g *Dump) Stack(t *Thread) []Frame { return StackOf(g.p, t.Node) }

// StackOf returns the frames of a stack by its leaf, leaf first, without those that only structure the stack and
// the STG machine's own. Frames that follow each other and are of one place in the source are one.
// If nothing else is on it, these are.
func StackOf(p *profile.Profile, node uint32) []Frame {
	if out := framesOf(p, node, false); len(out) > 0 {
		return out
	}
	return framesOf(p, node, true)
}

func framesOf(p *profile.Profile, node uint32, machine bool) []Frame {
	var out []Frame
	nodes := &p.Nodes
	for n := node; n != 0; n = nodes.Parent[n] {
		k, place := nodes.Kind[n], columns.PlaceID(nodes.Place[n])
		if columns.Structural(k) || k != eventlog.FrameSkipped && !machine && p.Locations[place].Category == eventlog.CategorySTG {
			continue
		}
		f := Frame{Name: "… frames left out"}
		if k != eventlog.FrameSkipped {
			f = frameOf(p, n)
		}
		if len(out) > 0 && out[len(out)-1] == f {
			continue
		}
		out = append(out, f)
	}
	return out
}
