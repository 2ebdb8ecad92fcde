package push

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"

	pprof "github.com/google/pprof/profile"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/export"
)

// Rules say what is sent beyond names of code and weights.
type Rules struct {
	Arguments bool // of the program
}

// wholeLog is the range of a whole log.
var wholeLog profile.Range

// Batch is what one log has to send.
type Batch struct {
	Service  string
	PID      uint32
	Labels   []eventlog.Label // of the process
	Profiles []*pprof.Profile // one for each event
}

// Read reads a log. An empty range is the whole of it.
func Read(file string, r profile.Range, rules Rules) (*Batch, error) {
	p, err := profile.Open(file, nil)
	if err != nil {
		return nil, err
	}
	return Of(p, r, rules)
}

// Of makes the batch of a profile.
func Of(p *profile.Profile, r profile.Range, rules Rules) (*Batch, error) {
	b := &Batch{PID: p.Capture.PID}
	b.label(p, rules)
	for i := range p.Events {
		if p.Events[i].Samples == 0 {
			continue
		}
		s := p.Select(profile.Filter{Range: r}.WithEvent(i))
		if s.Samples == 0 {
			continue
		}
		prof, err := export.Engine(s)
		if err != nil {
			return nil, fmt.Errorf("event %s: %w", p.Events[i].Name(), err)
		}
		b.Profiles = append(b.Profiles, prof)
	}
	return b, nil
}

// label names the process as OpenTelemetry's conventions do.
func (b *Batch) label(p *profile.Profile, rules Rules) {
	c := &p.Capture
	b.Service = cmp.Or(c.Label(eventlog.LabelService), path.Base(c.Program))
	add := func(key, value string) {
		if value != "" {
			b.Labels = append(b.Labels, eventlog.Label{Key: key, Value: value})
		}
	}
	add(eventlog.LabelService, b.Service)
	for _, l := range c.Labels {
		if l.Key != eventlog.LabelService {
			add(l.Key, l.Value)
		}
	}
	if c.PID != 0 {
		add("process.pid", strconv.FormatUint(uint64(c.PID), 10))
	}
	if c.Program != "" {
		add("process.executable.name", path.Base(c.Program))
		add("process.executable.path", c.Program)
	}
	for i := range p.Modules {
		if m := &p.Modules[i]; m.Path == c.Program && len(m.BuildID) > 0 {
			add("process.executable.build_id.gnu", fmt.Sprintf("%x", m.BuildID))
			break
		}
	}
	if c.GHCVersion != "" {
		add("process.runtime.name", "ghc")
		add("process.runtime.version", c.GHCVersion)
	}
	if rules.Arguments {
		add("process.command_line", strings.Join(c.Args, " "))
	}
}
