package export

import (
	"fmt"
	"slices"
	"strings"

	pprof "github.com/google/pprof/profile"

	"ccagent/profile"
	"ccagent/profile/columns"
)

// Labels of an Engine's samples. The values of LabelCentres are cost centres, root first.
const (
	LabelThread   = "thread"
	LabelCategory = "category"
	LabelCentres  = "cost_centre_stack"
	LabelPID      = "pid"
)

// Engine builds a selection's profile for an engine that stores the profiles of many programs. Its
// one sample type is the event's, in its own unit; it has no count of samples and no period, because
// some engines multiply one by the other. Neither a capability nor a CPU is among its labels, nor
// does it hold what may be secret: arguments and source text.
func Engine(s *profile.Selection) (*pprof.Profile, error) {
	b := newPProfBuilder(s.Profile)
	b.engine = true
	if err := b.selections([]*profile.Selection{s}); err != nil {
		return nil, err
	}
	p, r := s.Profile, s.Filter.Range
	to := p.Duration
	if r.To != 0 {
		to = min(to, r.To)
	}
	from := min(r.From, to)
	var err error
	if b.out.TimeNanos, err = signed(columns.SatAdd(p.Capture.StartUnixNs, from)); err != nil {
		return nil, fmt.Errorf("the time of the log: %w", err)
	}
	if b.out.DurationNanos, err = signed(to - from); err != nil {
		return nil, fmt.Errorf("the duration of the log: %w", err)
	}
	if err := b.out.CheckValid(); err != nil {
		return nil, fmt.Errorf("build pprof profile: %w", err)
	}
	return b.out.Compact(), nil
}

// engineType is the name by which engines know what an event measures.
func engineType(e *columns.Event) string {
	switch {
	case e.Granted == "off-cpu":
		return "off_cpu"
	case e.Unit == "ns" && slices.Contains([]string{"cpu-clock", "task-clock", "tick"}, e.Granted):
		return "cpu"
	case e.Granted == "alloc":
		return "alloc_space"
	}
	return strings.ReplaceAll(e.Name(), "-", "_")
}

func (b *pprofBuilder) engineLabel(row *pprof.Sample, k rowKey) {
	row.Label = map[string][]string{LabelThread: {b.names[k.t]}, LabelCategory: {b.p.SiteCategory(k.site).String()}}
	if of := b.centres(b.p.Sites[k.site].Centres); of != "" {
		row.Label[LabelCentres] = []string{of}
	}
	row.NumLabel = map[string][]int64{LabelPID: {int64(k.t.pid)}}
}

// centres returns the names on a cost-centre stack.
func (b *pprofBuilder) centres(node uint32) string {
	var names []string
	for n := node; n != 0; n = b.p.Nodes.Parent[n] {
		names = append(names, b.p.FrameOf(columns.PlaceID(b.p.Nodes.Place[n])).Name)
	}
	slices.Reverse(names)
	return strings.Join(names, ";")
}
