package export

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	pprof "github.com/google/pprof/profile"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/stacks"
)

// PProf writes a gzipped profile.proto. Its first sample type, "samples", is their
// number; one sample type for each selection follows. Samples have the labels thread,
// capability, category and cpu, and the numeric label pid.
func PProf(w io.Writer, ss []*profile.Selection, o Options) error {
	b := newPProfBuilder(ss[0].Profile)
	if err := b.selections(ss); err != nil {
		return err
	}
	b.about(ss[0], o)
	if err := b.out.CheckValid(); err != nil {
		return fmt.Errorf("build pprof profile: %w", err)
	}
	return b.out.Write(w)
}

type pprofBuilder struct {
	p         *profile.Profile
	out       *pprof.Profile
	names     map[thread]string
	functions map[functionKey]*pprof.Function
	places    map[columns.PlaceID]*pprof.Location
	frames    map[*profile.Frame]*pprof.Location // for frames without code
	mappings  map[uint32]*pprof.Mapping
	bias      map[uint32]uint64
	engine    bool // see Engine
}

type functionKey struct{ name, symbol, file string }

// rowKey identifies a sample of the output. Samples of the log with equal keys are merged.
type rowKey struct {
	site columns.SiteID
	t    thread
	cap  uint32
	cpu  uint32
}

func newPProfBuilder(p *profile.Profile) *pprofBuilder {
	b := &pprofBuilder{
		p: p, out: &pprof.Profile{}, names: names(p), functions: make(map[functionKey]*pprof.Function),
		places: make(map[columns.PlaceID]*pprof.Location), frames: make(map[*profile.Frame]*pprof.Location),
		mappings: make(map[uint32]*pprof.Mapping), bias: make(map[uint32]uint64),
	}
	first := make(map[uint32]*columns.Mapping)
	for i := range p.Mappings {
		if m := &p.Mappings[i]; first[m.Module] == nil {
			first[m.Module] = m
		}
	}
	for i := range p.Modules {
		m := &p.Modules[i]
		pm := &pprof.Mapping{
			ID: uint64(len(b.out.Mapping) + 1), File: m.Path, BuildID: fmt.Sprintf("%x", m.BuildID),
			HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true,
		}
		if at := first[m.ID]; at != nil {
			pm.Start, pm.Limit = at.Start, at.End
			b.bias[m.ID] = at.Bias
		}
		b.mappings[m.ID] = pm
		b.out.Mapping = append(b.out.Mapping, pm)
	}
	return b
}

func pprofUnit(unit string) string {
	switch unit {
	case "ns":
		return "nanoseconds"
	case "bytes":
		return "bytes"
	}
	return "count"
}

func (b *pprofBuilder) selections(ss []*profile.Selection) error {
	if !b.engine {
		b.out.SampleType = []*pprof.ValueType{{Type: "samples", Unit: "count"}}
	}
	for _, s := range ss {
		e := s.EventDef()
		name := e.Name()
		if b.engine {
			name = engineType(e)
		}
		b.out.SampleType = append(b.out.SampleType, &pprof.ValueType{Type: name, Unit: pprofUnit(e.Unit)})
	}
	for i, s := range ss {
		column := len(b.out.SampleType) - len(ss) + i
		if err := b.selection(s, column); err != nil {
			return err
		}
	}
	return nil
}

func (b *pprofBuilder) selection(s *profile.Selection, column int) error {
	rows := make(map[rowKey]*pprof.Sample)
	locations := make([][]*pprof.Location, len(b.p.Sites))
	walker := stacks.NewWalker(s, true)
	for site, smp := range s.EachSample() {
		k := rowKey{site, threadOf(smp.Thread), smp.Capability, smp.CPU}
		if b.engine {
			k.cap, k.cpu = eventlog.NoCapability, 0
		}
		row := rows[k]
		if row == nil {
			if locations[site] == nil {
				locations[site] = b.stack(s, walker, site)
			}
			row = &pprof.Sample{Location: locations[site], Value: make([]int64, len(b.out.SampleType))}
			if b.engine {
				b.engineLabel(row, k)
			} else {
				b.label(row, k)
			}
			rows[k] = row
			b.out.Sample = append(b.out.Sample, row)
		}
		total, err := signed(uint64(row.Value[column]) + smp.Weight)
		if err != nil || smp.Weight > uint64(total) {
			return fmt.Errorf("event %s: %w", s.EventDef().Name(), err)
		}
		row.Value[column] = total
		if !b.engine {
			row.Value[0]++
		}
	}
	return nil
}

func (b *pprofBuilder) label(row *pprof.Sample, k rowKey) {
	row.Label = map[string][]string{
		"thread":   {b.names[k.t]},
		"category": {b.p.SiteCategory(k.site).String()},
		// A label with text, because the format drops numeric labels of value 0.
		"cpu": {strconv.FormatUint(uint64(k.cpu), 10)},
	}
	if k.cap != eventlog.NoCapability {
		row.Label["capability"] = []string{strconv.FormatUint(uint64(k.cap), 10)}
	}
	row.NumLabel = map[string][]int64{"pid": {int64(k.t.pid)}}
}

// stack returns a site's locations, leaf first.
func (b *pprofBuilder) stack(s *profile.Selection, w *stacks.Walker, site columns.SiteID) []*pprof.Location {
	var out []*pprof.Location
	for _, f := range stackOf(w, site) {
		out = append(out, b.location(s, f))
	}
	return out
}

func (b *pprofBuilder) location(s *profile.Selection, f stacks.Frame) *pprof.Location {
	module, addr, ok := uint32(0), uint64(0), false
	if f.Place != 0 {
		module, addr, ok = b.p.Place(f.Place)
	}
	if !ok {
		if l := b.frames[f.Frame]; l != nil {
			return l
		}
		l := b.newLocation()
		l.Line = []pprof.Line{{Function: b.function(f.Frame.Name, f.Frame.Symbol, f.Frame.File), Line: int64(f.Frame.Line)}}
		b.frames[f.Frame] = l
		return l
	}
	if l := b.places[f.Place]; l != nil {
		return l
	}
	l := b.newLocation()
	l.Mapping, l.Address = b.mappings[module], addr+b.bias[module]
	for _, in := range slices.Backward(b.p.InlinedAt(f.Place)) {
		l.Line = append(l.Line, pprof.Line{Function: b.function(in.Name, in.Symbol, in.File), Line: int64(in.Line)})
	}
	for _, c := range s.CauseLines(nil, profile.LevelBinding, f.Place) {
		name, symbol, file, line := c.Element.Name, "", c.Element.File, c.Line
		if c.Element.Kind != profile.KindSource || c.Element.Binding == f.Frame.Binding {
			symbol = f.Frame.Symbol
		}
		if c.Element.Kind == profile.KindCategory && f.Frame.Name != "" {
			// The name of a C or kernel function says more than its category.
			name, file, line = f.Frame.Name, f.Frame.File, f.Frame.Line
		}
		l.Line = append(l.Line, pprof.Line{Function: b.function(name, symbol, file), Line: int64(line)})
	}
	if len(l.Line) == 0 {
		l.Line = []pprof.Line{{Function: b.function(f.Frame.Name, f.Frame.Symbol, f.Frame.File), Line: int64(f.Frame.Line)}}
	}
	b.places[f.Place] = l
	return l
}

func (b *pprofBuilder) newLocation() *pprof.Location {
	l := &pprof.Location{ID: uint64(len(b.out.Location) + 1)}
	b.out.Location = append(b.out.Location, l)
	return l
}

func (b *pprofBuilder) function(name, symbol, file string) *pprof.Function {
	if symbol == "" {
		symbol = name
	}
	k := functionKey{name, symbol, file}
	f := b.functions[k]
	if f == nil {
		f = &pprof.Function{ID: uint64(len(b.out.Function) + 1), Name: name, SystemName: symbol, Filename: file}
		b.functions[k] = f
		b.out.Function = append(b.out.Function, f)
	}
	return f
}

// about adds comments about the profile's origin and what it lacks.
func (b *pprofBuilder) about(s *profile.Selection, o Options) {
	p, out := b.p, b.out
	e := s.EventDef()
	out.PeriodType = &pprof.ValueType{Type: e.Name(), Unit: pprofUnit(e.Unit)}
	out.Period, _ = signed(interval(e))
	out.DefaultSampleType = e.Name()
	out.TimeNanos, _ = signed(p.Capture.StartUnixNs)
	from, to := s.Filter.Range.From, s.Filter.Range.To
	if to == 0 || to > p.Duration {
		to = p.Duration
	}
	out.DurationNanos, _ = signed(to - min(from, to))
	out.Comments = []string{o.Program, commandLine(p)}
	for i := range p.Events {
		e := &p.Events[i]
		if e.Fallback != "" {
			out.Comments = append(out.Comments, e.Title()+": "+e.Fallback)
		}
		if e.Lost > 0 {
			out.Comments = append(out.Comments, fmt.Sprintf("%s: %d samples were lost", e.Name(), e.Lost))
		}
	}
}
