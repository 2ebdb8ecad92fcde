package imports

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"ccagent/eventlog"

	pprof "github.com/google/pprof/profile"
)

const (
	// maxProfile bounds a profile.proto, decompressed.
	maxProfile = 512 << 20
	// maxSplit bounds the number of samples that one row is split into, and
	// maxSamples that of a whole profile: later rows become one sample each.
	maxSplit   = 1 << 16
	maxSamples = 1 << 22
)

// pprof reads a profile.proto and writes it to the log.
func (l *log) pprof(r io.Reader, s *Summary) error {
	data, err := io.ReadAll(io.LimitReader(r, maxProfile+1))
	if err != nil {
		return fmt.Errorf("read pprof profile: %w", err)
	}
	if len(data) > maxProfile {
		return fmt.Errorf("read pprof profile: %w: more than %d MiB; %s", ErrTooLarge, maxProfile>>20, smallerPProf)
	}
	if err := l.spend.hold(decodedSize(data)); err != nil {
		return fmt.Errorf("read pprof profile: %w; %s", err, smallerPProf)
	}
	p, err := pprof.ParseUncompressed(data)
	if err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		return fmt.Errorf("read pprof profile: %w", err)
	}
	s.Comments = p.Comments
	s.Duration = uint64(max(p.DurationNanos, 0))
	in := &pprofImport{log: l, p: p, frames: make(map[*pprof.Location]*frame), leaf: make(map[*pprof.Location]eventlog.Category), threads: make(map[string]uint32)}
	in.columns()
	in.leaves()
	for _, row := range p.Sample {
		if in.row(row); errors.Is(l.err, ErrTooLarge) {
			return fmt.Errorf("read pprof profile: %w; %s", l.err, smallerPProf)
		} else if l.err != nil {
			return l.err
		}
	}
	return nil
}

const smallerPProf = "make a smaller one of it, for example with go tool pprof -proto -focus=NAME"

type pprofImport struct {
	*log
	p       *pprof.Profile
	events  []int // event index by column; −1 for the column of sample counts
	counts  int   // column of sample counts, or −1
	frames  map[*pprof.Location]*frame
	leaf    map[*pprof.Location]eventlog.Category // categories of leaves, from the samples' labels
	threads map[string]uint32
}

// columns defines an event for each sample type, the default type first.
func (in *pprofImport) columns() {
	types := in.p.SampleType
	in.events, in.counts = make([]int, len(types)), -1
	for i, t := range types {
		if t.Type == "samples" && t.Unit == "count" && len(types) > 1 {
			in.counts = i
			break
		}
	}
	first := len(types) - 1
	for i, t := range types {
		if t.Type == in.p.DefaultSampleType {
			first = i
		}
	}
	for first == in.counts && first >= 0 {
		first = (first + 1) % len(types) // counts is only set if there is another type
	}
	n := 0
	define := func(i int) {
		t := types[i]
		unit := t.Unit
		if unit == "nanoseconds" {
			unit = "ns"
		}
		def := &eventlog.EventDef{Index: uint32(n), Requested: cut(t.Type), Granted: cut(t.Type), Unit: cut(unit), RateMode: eventlog.RatePeriod}
		if pt := in.p.PeriodType; pt != nil && pt.Type == t.Type && in.p.Period > 0 {
			def.Rate = uint64(in.p.Period)
		}
		in.write(0, def)
		in.events[i] = n
		n++
	}
	for i := range types {
		in.events[i] = -1
	}
	if first >= 0 {
		define(first)
	}
	for i := range types {
		if i != first && i != in.counts {
			define(i)
		}
	}
}

// leaves collects the categories of leaves from the samples' labels.
func (in *pprofImport) leaves() {
	for _, row := range in.p.Sample {
		names := row.Label["category"]
		if len(row.Location) == 0 || len(names) != 1 {
			continue
		}
		for c := eventlog.CategoryUnresolved; c <= eventlog.CategoryKernel; c++ {
			if c.String() == names[0] {
				in.leaf[row.Location[0]] = c
			}
		}
	}
}

func (in *pprofImport) row(row *pprof.Sample) {
	node := uint32(0)
	for i := len(row.Location) - 1; i >= 0; i-- {
		node = in.node(node, in.frame(row.Location[i]))
	}
	smp := eventlog.Sample{Node: node, Capability: eventlog.NoCapability, Stop: eventlog.StopRoot}
	smp.CPU, _ = labelNumber(row, "cpu")
	smp.PID, _ = labelNumber(row, "pid")
	if n, ok := labelNumber(row, "capability"); ok {
		smp.Capability = min(n, eventlog.NoCapability)
	}
	if names := row.Label["thread"]; len(names) > 0 {
		id, ok := in.threads[names[0]]
		if !ok {
			in.hold(costName)
			id = uint32(len(in.threads) + 1)
			in.threads[names[0]] = id
		}
		smp.TID = id
	} else if n, ok := labelNumber(row, "tid"); ok {
		smp.TID = n
	}
	if len(row.Location) > 0 && in.frame(row.Location[0]).category == eventlog.CategoryKernel {
		smp.Flags = eventlog.SampleInKernel
	}
	values := 0
	for i, v := range row.Value {
		if in.events[i] >= 0 && v > 0 {
			values++
		}
	}
	for i, v := range row.Value {
		if in.events[i] < 0 || v <= 0 {
			continue // negative values come from a difference of profiles
		}
		n := uint64(1)
		if in.counts >= 0 && values == 1 {
			n = uint64(max(row.Value[in.counts], 1))
		}
		n = min(n, uint64(v), maxSplit)
		if in.samples+n > maxSamples {
			n = 1
		}
		smp.Event = uint32(in.events[i])
		each, more := uint64(v)/n, uint64(v)%n
		for k := range n {
			smp.Weight = each
			if k < more {
				smp.Weight++
			}
			in.sample(0, &smp)
		}
	}
}

// labelNumber returns the value of a numeric label, which pprof files hold as a number
// or as text.
func labelNumber(row *pprof.Sample, key string) (uint32, bool) {
	if ns := row.NumLabel[key]; len(ns) > 0 && ns[0] >= 0 && ns[0] <= math.MaxUint32 {
		return uint32(ns[0]), true
	}
	if ss := row.Label[key]; len(ss) > 0 {
		n, err := strconv.ParseUint(ss[0], 10, 32)
		return uint32(n), err == nil
	}
	return 0, false
}

func (in *pprofImport) frame(loc *pprof.Location) *frame {
	if f := in.frames[loc]; f != nil {
		return f
	}
	in.hold(costPlace + costLine*int64(len(loc.Line)))
	f := &frame{key: strconv.FormatUint(loc.ID, 10)}
	for _, ln := range loc.Line {
		if ln.Function == nil {
			continue
		}
		x := line{name: cut(ln.Function.Name), symbol: cut(ln.Function.SystemName), file: cut(ln.Function.Filename)}
		in.look(len(x.name) + len(x.symbol) + len(x.file))
		if x.name == "" {
			x.name = x.symbol
		}
		if ln.Line > 0 && ln.Line <= math.MaxInt32 {
			x.line = uint32(ln.Line)
		}
		f.lines = append(f.lines, x)
	}
	f.category = eventlog.CategoryUnresolved
	if n := len(f.lines); n > 0 {
		name := f.lines[n-1].name
		f.category = categoryOf(name)
		inner, isCategory := strings.CutPrefix(name, "(")
		if c, ok := categoryNamed(strings.TrimSuffix(inner, ")")); ok && isCategory {
			f.category = c
		}
	} else if m := loc.Mapping; m != nil && m.File != "" {
		f.lines = []line{{name: fmt.Sprintf("%s+%#x", cut(m.File), loc.Address-m.Start)}}
		f.category = eventlog.CategoryForeign
	} else if loc.Address != 0 {
		f.lines = []line{{name: fmt.Sprintf("%#x", loc.Address)}}
	}
	if c, ok := in.leaf[loc]; ok {
		f.category, f.bare = c, c != eventlog.CategoryHaskell
	}
	in.frames[loc] = f
	return f
}
