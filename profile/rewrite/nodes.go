package rewrite

import (
	"sort"

	"ccagent/eventlog"
)

// nodes assigns new ids to the stack nodes that kept samples use, in the order of their
// definition.
type nodes struct {
	samples  int
	segments []segment
	parent   []uint32 // dense index of the parent + 1; 0 is the empty stack
	id       []uint32 // 1 while surveying if used; then the new id, 0 if unused
}

// segment is a run of consecutive ids.
type segment struct{ first, n, index uint32 }

// find returns a node's dense index.
func (t *nodes) find(id uint32) (uint32, bool) {
	if id == 0 {
		return 0, false
	}
	i := len(t.segments) - 1
	if i >= 0 && id < t.segments[i].first {
		i = sort.Search(len(t.segments), func(i int) bool { return t.segments[i].first > id }) - 1
	}
	if i < 0 || id-t.segments[i].first >= t.segments[i].n {
		return 0, false
	}
	return t.segments[i].index + id - t.segments[i].first, true
}

// add adds definitions. As in profile, it refuses ids that do not increase, and a node
// whose parent is not defined before it becomes a root.
func (t *nodes) add(ev *eventlog.Nodes) {
	if t.refused(ev) {
		return
	}
	t.segments = t.extended(ev)
	for i := range ev.Nodes {
		parent := uint32(0)
		if at, ok := t.find(ev.Nodes[i].Parent); ok && int(at) < len(t.parent) {
			parent = at + 1
		}
		t.parent = append(t.parent, parent)
		t.id = append(t.id, 0)
	}
}

func (t *nodes) next() uint64 {
	if n := len(t.segments); n > 0 {
		return uint64(t.segments[n-1].first) + uint64(t.segments[n-1].n)
	}
	return 1
}

func (t *nodes) refused(ev *eventlog.Nodes) bool {
	return uint64(ev.First) < t.next() || uint64(ev.First)+uint64(len(ev.Nodes)) > 1<<32 || len(t.parent)+len(ev.Nodes) > 1<<31
}

func (t *nodes) extended(ev *eventlog.Nodes) []segment {
	n := uint32(len(ev.Nodes))
	if last := len(t.segments) - 1; last >= 0 && uint64(ev.First) == t.next() {
		t.segments[last].n += n
		return t.segments
	}
	return append(t.segments, segment{ev.First, n, uint32(len(t.parent))})
}

func (t *nodes) use(id uint32) {
	if at, ok := t.find(id); ok {
		t.id[at] = 1
	}
}

// number assigns ids from first on to the used nodes and their parents, and returns the
// next free id.
func (t *nodes) number(first uint32) uint32 {
	for i := len(t.id) - 1; i >= 0; i-- {
		if up := t.parent[i]; t.id[i] != 0 && up != 0 {
			t.id[up-1] = 1
		}
	}
	for i := range t.id {
		if t.id[i] != 0 {
			t.id[i] = first
			first++
		}
	}
	return first
}

// of returns the new id of a node, 0 for none.
func (t *nodes) of(id uint32) uint32 {
	if at, ok := t.find(id); ok {
		return t.id[at]
	}
	return 0
}

// renumber rewrites node definitions: it yields the used nodes of an event as runs of new
// ids. It must see the log's events in their order.
type renumber struct {
	*nodes
	seen uint64 // lowest id that the next event may define
	run  eventlog.Nodes
}

func (t *renumber) each(ev *eventlog.Nodes, yield func(*eventlog.Nodes) error) error {
	if uint64(ev.First) < max(t.seen, 1) || uint64(ev.First)+uint64(len(ev.Nodes)) > 1<<32 {
		return nil
	}
	t.seen = uint64(ev.First) + uint64(len(ev.Nodes))
	t.run.Nodes = t.run.Nodes[:0]
	for i := range ev.Nodes {
		at, ok := t.find(ev.First + uint32(i))
		if !ok || t.id[at] == 0 {
			continue
		}
		n := ev.Nodes[i]
		n.Parent = 0
		if up := t.parent[at]; up != 0 {
			n.Parent = t.id[up-1]
		}
		if len(t.run.Nodes) == 0 {
			t.run.First = t.id[at]
		}
		t.run.Nodes = append(t.run.Nodes, n)
	}
	if len(t.run.Nodes) == 0 {
		return nil
	}
	return yield(&t.run)
}
