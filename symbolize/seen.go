package symbolize

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"ccagent/eventlog"
)

// Seen is what a log has for the symboliser.
type Seen struct {
	Capture eventlog.Capture
	Modules []eventlog.Module // by id
	// Addresses holds the distinct addresses of each module, sorted; kernel
	// addresses and those of no file are under module 0.
	Addresses map[uint32][]Address
	// After are the last ids of the symbol tables that the log has already.
	After IDs
	// Symbolized is set when it has any.
	Symbolized bool
	LastTime   uint64 // of the last event, ns
	// Complete is set when the log has its end marker, Malformed counts stretches
	// of it that cannot be read.
	Complete  bool
	Malformed int
}

// maxSeen bounds the distinct addresses that are taken from a log.
const maxSeen = 1 << 24

// ReadSeen collects a log's addresses. Kinds of frames that hold no address
// are left out.
func ReadSeen(r io.Reader) (Seen, error) {
	s := Seen{Addresses: map[uint32][]Address{}}
	type key struct {
		module uint32
		addr   uint64
	}
	calls := map[key]bool{} // whether an address was seen as a return address only
	er := eventlog.NewReader(r)
	for er.Next() {
		rec := er.Record()
		s.LastTime = max(s.LastTime, rec.Time)
		switch e := rec.Event.(type) {
		case *eventlog.Capture:
			s.Capture = *e
			s.Capture.Args = slices.Clone(e.Args)
		case *eventlog.Module:
			m := *e
			m.BuildID = slices.Clone(e.BuildID)
			s.Modules = append(s.Modules, m)
		case *eventlog.Nodes:
			for _, n := range e.Nodes {
				if !n.Kind.HasAddress() {
					continue
				}
				k, call := key{n.Module, n.Addr}, n.Kind == eventlog.FrameC
				if old, ok := calls[k]; ok {
					calls[k] = old && call
				} else if len(calls) < maxSeen {
					calls[k] = call
				}
			}
		case *eventlog.Closure:
			if k := (key{e.Module, e.Addr}); len(calls) < maxSeen {
				calls[k] = false
			}
		case *eventlog.File:
			s.After.File = max(s.After.File, e.ID)
		case *eventlog.Binding:
			s.After.Binding = max(s.After.Binding, e.ID)
		case *eventlog.Span:
			s.After.Span = max(s.After.Span, e.ID)
		case *eventlog.Block:
			s.After.Block = max(s.After.Block, e.ID)
		case *eventlog.Core:
			s.After.Core = max(s.After.Core, e.ID)
		case *eventlog.Locations:
			s.Symbolized = true
		case *eventlog.Malformed:
			s.Malformed++
		}
	}
	s.Complete = er.Complete()
	for k, call := range calls {
		s.Addresses[k.module] = append(s.Addresses[k.module], Address{Addr: k.addr, Call: call})
	}
	for _, a := range s.Addresses {
		slices.SortFunc(a, func(x, y Address) int { return cmp.Compare(x.Addr, y.Addr) })
	}
	slices.SortFunc(s.Modules, func(a, b eventlog.Module) int { return cmp.Compare(a.ID, b.ID) })
	if err := er.Err(); err != nil {
		return s, fmt.Errorf("read the log: %w", err)
	}
	return s, nil
}
