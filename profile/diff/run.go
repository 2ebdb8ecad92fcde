package diff

import (
	"ccagent/profile"
	"ccagent/profile/columns"
)

// Metric is the figure of an element that is compared.
type Metric uint8

// The metrics.
const (
	ByShare     Metric = iota // samples whose code the element is a cause of
	ByOnly                    // of those, samples without another cause
	ByInclusive               // samples with the element on their stack
	metrics
)

var metricNames = [metrics]string{"share", "only", "inclusive"}

func (m Metric) String() string { return metricNames[min(m, metrics-1)] }

// ParseMetric parses a metric's name.
func ParseMetric(s string) (Metric, bool) {
	for m, name := range metricNames {
		if s == name {
			return Metric(m), true
		}
	}
	return 0, false
}

// Run is the figures of one log at one level. It does not retain the log.
type Run struct {
	Name           string // the log's
	Event, Granted string
	Title          string // of the event, for readers
	Unit           string
	Level          profile.Level
	Samples        uint64
	Total          float64 // weight
	Duration       uint64  // ns, of the whole log

	elements []figure
}

// figure is an element's figures in one run.
type figure struct {
	// key identifies the element across builds. other is a second identification for
	// when key does not match: unique in its run, or empty.
	key, other string
	about      About
	weight     [metrics]float64
	samples    uint64 // with the element at their leaf
	// callers is the part of the share by the caller, given by its position in
	// Run.elements: the nearest frame without the element.
	callers map[int]float64
}

// About describes an element apart from its figures.
type About struct {
	Name, Kind, File, Module, Package string
	Span                              columns.Extent
	ID                                profile.ElementID // in its own log
}

// Measure computes the figures of a selection.
func Measure(name string, s *profile.Selection, level profile.Level) *Run {
	e := s.EventDef()
	r := &Run{
		Name: name, Event: e.Name(), Granted: e.Granted, Title: e.Title(), Unit: e.Unit, Level: level,
		Samples: s.Samples, Total: float64(s.Total), Duration: s.Profile.Lasted(),
	}
	rows := s.Hot(level).Rows
	begins := beginnings(s.Profile, level)
	for i := range rows {
		row := &rows[i]
		el := row.Element
		f := figure{
			about:   About{el.Name, el.KindName(), el.File, el.Module, el.Package, el.Span, el.ID},
			weight:  [metrics]float64{float64(row.ShareWeight), float64(row.OnlyWeight), float64(row.InclusiveWeight)},
			samples: row.Samples,
		}
		f.key, f.other = names(el, begins)
		r.elements = append(r.elements, f)
	}
	at := make(map[profile.ElementID]int, len(rows))
	for i := range rows {
		at[rows[i].Element.ID] = i
	}
	for of, w := range s.Callers(level) {
		f := &r.elements[at[of.Callee]]
		if f.callers == nil {
			f.callers = make(map[int]float64)
		}
		f.callers[at[of.Caller]] += float64(w)
	}
	r.distinguish()
	return r
}

// beginnings returns, for the bindings of spans, their elements with names and first
// lines.
func beginnings(p *profile.Profile, level profile.Level) map[columns.BindingID]*profile.Element {
	if level != profile.LevelSpan {
		return nil
	}
	of := make(map[columns.BindingID]*profile.Element)
	els := p.Elements(profile.LevelBinding)
	for i := range els {
		if e := &els[i]; e.Binding != 0 && e.Span.Line > 0 {
			of[e.Binding] = e
		}
	}
	return of
}

// names returns the identifications of an element across builds.
func names(e *profile.Element, begins map[columns.BindingID]*profile.Element) (key, other string) {
	if e.Kind == profile.KindCategory {
		return e.Name, ""
	}
	switch e.Level {
	case profile.LevelSpan:
		// Edits further up shift lines; positions relative to the binding stay
		// the same.
		if b := begins[e.Binding]; b != nil && e.Span.Line >= b.Span.Line {
			x := e.Span
			x.Line, x.EndLine = x.Line-b.Span.Line, x.EndLine-b.Span.Line
			return b.Name + "\x00" + x.String(), ""
		}
	case profile.LevelFile:
		if e.Module != "" {
			return e.Name, unversioned(e.Package) + "\x00" + e.Module
		}
	case profile.LevelPackage:
		return e.Name, unversioned(e.Package)
	}
	return e.Name, ""
}

// unversioned returns a unit's name without version and hash: "vector" for
// "vector-0.12.3.1-Hx2".
func unversioned(unit string) string {
	for i := 0; i+1 < len(unit); i++ {
		if unit[i] == '-' && unit[i+1] >= '0' && unit[i+1] <= '9' {
			return unit[:i]
		}
	}
	return unit
}

// distinguish makes keys unique within the run: by package, then by number.
func (r *Run) distinguish() {
	count := make(map[string]int)
	for i := range r.elements {
		count[r.elements[i].key]++
	}
	seen := make(map[string]bool)
	for i := range r.elements {
		f := &r.elements[i]
		if count[f.key] > 1 {
			f.key += "\x00" + unversioned(f.about.Package)
		}
		for seen[f.key] {
			f.key += "\x00"
		}
		seen[f.key] = true
	}
	clear(count)
	for i := range r.elements {
		count[r.elements[i].other]++
	}
	for i := range r.elements {
		if f := &r.elements[i]; count[f.other] > 1 {
			f.other = ""
		}
	}
}

// each returns the mean weight of a sample.
func (r *Run) each() float64 {
	if r.Samples == 0 {
		return 0
	}
	return r.Total / float64(r.Samples)
}

// noise returns the variance of a weight that is due to sampling alone: that of a Poisson
// number of samples of the run's mean weight. Even with no samples it is not zero,
// because the expected number need not be.
func (r *Run) noise(weight float64) float64 {
	each := r.each()
	return max(weight, each) * each
}

// shareNoise is like noise, for a weight as a fraction of the total.
func (r *Run) shareNoise(weight float64) float64 {
	if r.Samples == 0 || r.Total == 0 {
		return 0
	}
	n := float64(r.Samples)
	p := min(max(weight/r.Total, 1/n), 1)
	return p * max(1-p, 1/n) / n
}

// aliases matches keys that only one side has by their other identification, if it is
// unique on each side. It maps keys of b to keys of a.
func aliases(a, b []*Run) map[string]string {
	have := func(runs []*Run) map[string]string { // key → other name
		m := make(map[string]string)
		for _, r := range runs {
			for i := range r.elements {
				m[r.elements[i].key] = r.elements[i].other
			}
		}
		return m
	}
	ka, kb := have(a), have(b)
	alone := func(x, y map[string]string) map[string]string { // other name → key, "" if several
		m := make(map[string]string)
		for key, other := range x {
			if _, both := y[key]; both || other == "" {
				continue
			}
			if _, twice := m[other]; twice {
				key = ""
			}
			m[other] = key
		}
		return m
	}
	as, bs := alone(ka, kb), alone(kb, ka)
	out := make(map[string]string)
	for other, key := range bs {
		if to := as[other]; key != "" && to != "" {
			out[key] = to
		}
	}
	return out
}
