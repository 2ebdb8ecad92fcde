package worker

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"ccagent/eventlog"
	"ccagent/symbolize"
)

// validator passes on those of a child's events that were asked for, and counts what was
// resolved. Ids count up by one and refer backwards, so a
// log that other code relies on cannot be made to point astray.
type validator struct {
	sink    func(eventlog.Event) error
	sinkErr error
	ids     symbolize.IDs
	// open holds the addresses of each module that are not resolved yet; module
	// 0 is the kernel.
	open map[uint32]map[uint64]bool
	file uint32 // whose text is coming
	core uint32 // whose text is coming instead
	text uint64 // what is still to come of it
	at   uint64
}

// maxEvents bounds the bytes of a child's events.
const maxEvents = 2 << 30

// errTorn reports that the child's events ended in the middle of one.
var errTorn = errors.New("symboliser's events break off")

var errSink = errors.New("sink failed")

func newValidator(job *Job, sink func(eventlog.Event) error) *validator {
	v := &validator{sink: sink, ids: job.After, open: map[uint32]map[uint64]bool{}}
	add := func(module uint32, addrs []symbolize.Address) {
		set := v.open[module]
		if set == nil {
			set = make(map[uint64]bool, len(addrs))
			v.open[module] = set
		}
		for _, a := range addrs {
			set[a.Addr] = true
		}
	}
	for _, m := range job.Modules {
		add(m.ID, m.Addresses)
	}
	add(0, job.Kernel)
	return v
}

// read passes events on until the child closes its end. Text of a file that a
// failed child did not finish is left short; readers see its declared size.
func (v *validator) read(r io.Reader) error {
	v.file, v.core, v.text, v.at = 0, 0, 0, 0
	lr := &io.LimitedReader{R: r, N: maxEvents}
	er := eventlog.NewReader(lr)
	for er.Next() {
		e := er.Record().Event
		switch e.(type) {
		case *eventlog.BlockMarker:
			continue
		case *eventlog.Malformed:
			return errTorn
		}
		if err := v.check(e); err != nil {
			return err
		}
		if err := v.sink(e); err != nil {
			v.sinkErr = err
			return errSink
		}
	}
	if err := er.Err(); err != nil {
		var header *eventlog.HeaderError
		if errors.As(err, &header) {
			return nil // it died before its first event: Wait returns why
		}
		return fmt.Errorf("read the symboliser's events: %w", err)
	}
	if lr.N <= 0 {
		return fmt.Errorf("symboliser sent more than %d bytes", int64(maxEvents))
	}
	return nil
}

func (v *validator) check(e eventlog.Event) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("symboliser sent a bad event: "+format, args...)
	}
	switch e.(type) {
	case *eventlog.FileText, *eventlog.CoreText:
	default:
		if v.text > 0 {
			return bad("%d bytes of text are lacking of file %d or core %d", v.text, v.file, v.core)
		}
	}
	switch e := e.(type) {
	case *eventlog.ModuleSymbols:
		if v.open[e.Module] == nil {
			return bad("symbols of module %d", e.Module)
		}
	case *eventlog.File:
		if e.ID != v.ids.File+1 || e.TextSize > maxSource {
			return bad("file %d after %d", e.ID, v.ids.File)
		}
		v.ids.File, v.file, v.core, v.text, v.at = e.ID, e.ID, 0, e.TextSize, 0
	case *eventlog.FileText:
		if e.File != v.file || v.file == 0 || e.Offset != v.at || uint64(len(e.Text)) > v.text || len(e.Text) == 0 {
			return bad("text of file %d at %d", e.File, e.Offset)
		}
		v.at, v.text = v.at+uint64(len(e.Text)), v.text-uint64(len(e.Text))
	case *eventlog.Binding:
		if e.ID != v.ids.Binding+1 || e.Parent >= e.ID || e.Program != 0 && v.open[e.Program] == nil {
			return bad("binding %d after %d", e.ID, v.ids.Binding)
		}
		v.ids.Binding = e.ID
	case *eventlog.Span:
		placeless := e.File == 0 && e.Binding != 0 && e.Line|e.Col|e.EndLine|e.EndCol == 0
		if e.ID != v.ids.Span+1 || e.File == 0 && !placeless || e.File > v.ids.File || e.Binding > v.ids.Binding {
			return bad("span %d after %d", e.ID, v.ids.Span)
		}
		v.ids.Span = e.ID
	case *eventlog.Block:
		if e.ID != v.ids.Block+1 || v.open[e.Module] == nil || e.Binding > v.ids.Binding {
			return bad("block %d after %d", e.ID, v.ids.Block)
		}
		for _, b := range e.Enclosing {
			if b == 0 || b > v.ids.Binding {
				return bad("block %d in binding %d", e.ID, b)
			}
		}
		for _, c := range e.Causes {
			if c.Span == 0 || c.Span > v.ids.Span {
				return bad("block %d with span %d", e.ID, c.Span)
			}
		}
		v.ids.Block = e.ID
	case *eventlog.Core:
		if e.ID != v.ids.Core+1 || e.TextSize > maxSource || e.Binding == 0 || e.Binding > v.ids.Binding || e.File > v.ids.File {
			return bad("core %d after %d", e.ID, v.ids.Core)
		}
		for _, n := range e.Notes {
			if n.Span == 0 || n.Span > v.ids.Span {
				return bad("core %d with span %d", e.ID, n.Span)
			}
		}
		for _, b := range e.Also {
			if b == 0 || b > v.ids.Binding {
				return bad("core %d of binding %d", e.ID, b)
			}
		}
		v.ids.Core, v.file, v.core, v.text, v.at = e.ID, 0, e.ID, e.TextSize, 0
	case *eventlog.CoreText:
		if e.Core != v.core || v.core == 0 || e.Offset != v.at || uint64(len(e.Text)) > v.text || len(e.Text) == 0 {
			return bad("text of core %d at %d", e.Core, e.Offset)
		}
		v.at, v.text = v.at+uint64(len(e.Text)), v.text-uint64(len(e.Text))
	case *eventlog.Locations:
		open := v.open[e.Module]
		if open == nil {
			return bad("locations of module %d", e.Module)
		}
		for i := range e.Locations {
			l := &e.Locations[i]
			if !open[l.Addr] || l.Block > v.ids.Block || l.Binding > v.ids.Binding {
				return bad("location %#x of module %d", l.Addr, e.Module)
			}
			for _, line := range l.Lines {
				if line.File > v.ids.File || line.Binding > v.ids.Binding {
					return bad("line of location %#x", l.Addr)
				}
			}
			open[l.Addr] = false
		}
	default:
		return bad("%T is no symbol table", e)
	}
	return nil
}

// stretches keeps one stretch of each address that was asked for and has a location, which it is around.
func (v *validator) stretches(all []symbolize.Stretch) []symbolize.Stretch {
	type address struct {
		module uint32
		addr   uint64
	}
	seen := make(map[address]bool, len(all))
	return slices.DeleteFunc(all, func(s symbolize.Stretch) bool {
		open, asked := v.open[s.Module][s.Addr]
		a := address{s.Module, s.Addr}
		if !asked || open || seen[a] || s.Addr < s.Lo || s.Addr > s.Hi || s.Start > s.Lo {
			return true
		}
		seen[a] = true
		return false
	})
}

// remaining are the modules with what is not resolved of them.
func (v *validator) remaining(modules []ModuleFile) []ModuleFile {
	var out []ModuleFile
	for _, m := range modules {
		m.Addresses = left(v.open[m.ID], m.Addresses)
		if len(m.Addresses) > 0 {
			out = append(out, m)
		}
	}
	return out
}

func (v *validator) remainingKernel(addrs []symbolize.Address) []symbolize.Address {
	return left(v.open[0], addrs)
}

func left(open map[uint64]bool, addrs []symbolize.Address) []symbolize.Address {
	var out []symbolize.Address
	for _, a := range addrs {
		if open[a.Addr] {
			out = append(out, a)
		}
	}
	return out
}
