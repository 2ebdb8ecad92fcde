package e2e

import (
	"bufio"
	"os"
	"slices"
	"testing"

	"ccagent/eventlog"
)

// capturedLog is the contents of a log, read by this project's reader.
type capturedLog struct {
	capture *eventlog.Capture
	end     *eventlog.CaptureEnd
	cost    *eventlog.AgentCost
	samples []eventlog.Sample // of the first event
	// atFullRate is the number of samples before the first change of the rate.
	atFullRate int
	// allocations are the samples of the second, which is alloc by default.
	allocations []eventlog.Sample
	nodes       []eventlog.Node // by id
	bindings    map[uint32]eventlog.Binding
	locations   map[place]eventlog.Location
	blocks      map[uint32]eventlog.Block
	spans       map[uint32]eventlog.Span
	files       map[uint32]eventlog.File
	modules     map[uint32]string // paths
	lost        uint64
	malformed   []eventlog.Malformed
	complete    bool
}

type place struct {
	module uint32
	addr   uint64
}

func readLog(t *testing.T, path string) *capturedLog {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := &capturedLog{
		nodes:     make([]eventlog.Node, 1),
		bindings:  map[uint32]eventlog.Binding{},
		locations: map[place]eventlog.Location{},
		blocks:    map[uint32]eventlog.Block{},
		spans:     map[uint32]eventlog.Span{},
		files:     map[uint32]eventlog.File{},
		modules:   map[uint32]string{},
	}
	r := eventlog.NewReader(bufio.NewReader(f))
	for r.Next() {
		switch e := r.Record().Event.(type) {
		case *eventlog.Capture:
			c := *e
			l.capture = &c
		case *eventlog.CaptureEnd:
			c := *e
			l.end = &c
		case *eventlog.AgentCost:
			c := *e
			l.cost = &c
		case *eventlog.EventRate:
			if l.atFullRate == 0 {
				l.atFullRate = len(l.samples)
			}
		case *eventlog.Loss:
			l.lost += e.Count
		case *eventlog.Nodes:
			if int(e.First) != len(l.nodes) {
				t.Fatalf("%s: nodes from %d on, want %d", path, e.First, len(l.nodes))
			}
			l.nodes = append(l.nodes, e.Nodes...)
		case *eventlog.Sample:
			if e.Event != 0 {
				l.allocations = append(l.allocations, *e)
				break
			}
			if int(e.Node) >= len(l.nodes) {
				t.Fatalf("%s: a sample of node %d, of %d", path, e.Node, len(l.nodes))
			}
			l.samples = append(l.samples, *e)
		case *eventlog.Binding:
			l.bindings[e.ID] = *e
		case *eventlog.Module:
			l.modules[e.ID] = e.Path
		case *eventlog.File:
			l.files[e.ID] = *e
		case *eventlog.Span:
			l.spans[e.ID] = *e
		case *eventlog.Block:
			b := *e
			b.Causes = slices.Clone(e.Causes)
			l.blocks[e.ID] = b
		case *eventlog.Locations:
			for _, loc := range e.Locations {
				loc.Lines = slices.Clone(loc.Lines)
				l.locations[place{e.Module, loc.Addr}] = loc
			}
		case *eventlog.Malformed:
			l.malformed = append(l.malformed, *e)
		}
	}
	if err := r.Err(); err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	l.complete = r.Complete()
	return l
}

// wantRooted fails unless nearly every stack of Haskell code is walked to its root.
func (l *capturedLog) wantRooted(t *testing.T) (haskell int) {
	t.Helper()
	rooted := 0
	reasons := map[string]int{}
	for _, s := range l.samples {
		if !inHaskell(s) && !l.unknownHaskell(s) {
			continue
		}
		haskell++
		if s.Stop.Complete() {
			rooted++
		} else {
			reasons[s.Stop.String()]++
		}
	}
	t.Logf("%d of %d stacks are complete; the others: %v", rooted, haskell, reasons)
	wantShareAbove(t, "complete stacks", rooted, haskell, 0.999)
	return haskell
}

// wantWhole fails unless the log was finished and nothing in it is damaged.
func (l *capturedLog) wantWhole(t *testing.T) {
	t.Helper()
	if len(l.malformed) > 0 {
		t.Errorf("%d malformed stretches, first: %v", len(l.malformed), &l.malformed[0])
	}
	if !l.complete {
		t.Error("the log has no end marker")
	}
	if l.end == nil {
		t.Error("the log has no end of capture")
	}
}

// source returns the source binding of a node's code: f for the worker $wf, the top-level
// binding for a local one. It is empty if the code has no name.
func (l *capturedLog) source(n eventlog.Node) string {
	loc, ok := l.locations[place{n.Module, n.Addr}]
	if !ok {
		return ""
	}
	b, ok := l.bindings[loc.Binding]
	for range 16 {
		if !ok || b.Parent == 0 {
			break
		}
		b = l.bindings[b.Parent]
	}
	return b.Name
}

// frames gives a sample's stack, leaf first.
func (l *capturedLog) frames(s eventlog.Sample) []eventlog.Node {
	var out []eventlog.Node
	for id := s.Node; id != 0; id = l.nodes[id].Parent {
		out = append(out, l.nodes[id])
	}
	return out
}

// unknownHaskell reports whether a sample was taken as not in Haskell code, although the
// code's name is Haskell's.
func (l *capturedLog) unknownHaskell(s eventlog.Sample) bool {
	if s.Stop != eventlog.StopNoHaskell || s.Node == 0 {
		return false
	}
	leaf := l.nodes[s.Node]
	return l.locations[place{leaf.Module, leaf.Addr}].Category == eventlog.CategoryHaskell
}

// inHaskell reports whether a sample was taken while Haskell code ran.
func inHaskell(s eventlog.Sample) bool {
	return s.Flags&(eventlog.SampleInKernel|eventlog.SampleViaC|eventlog.SampleContext) == 0 &&
		s.Stop != eventlog.StopNoHaskell && s.Stop != eventlog.StopNoUserContext
}
