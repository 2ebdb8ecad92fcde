package daemon

import (
	"fmt"
	"os/user"
	"path"
	"slices"
	"strconv"

	"ccagent/agent/config"
	"ccagent/agent/discovery"
	"ccagent/agent/engine"
	"ccagent/agent/source"
	"ccagent/perf"
)

// Check reads a configuration, as the daemon would.
func Check(path string) (*config.Config, error) {
	c, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	for n, event := range c.Daemon.Events {
		_, err := source.Parse(engine.HostKinds(), []string{event}, perf.Rate{Frequency: c.Daemon.Frequency})
		if err == nil && slices.Contains(c.Daemon.Events[:n], event) {
			err = fmt.Errorf("event %s is named twice", event)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, c.Wrong(fmt.Sprintf("events[%d]", n), err))
		}
	}
	return c, nil
}

// rule returns the first rule that matches a process, nil if none does.
func (d *Daemon) rule(p discovery.Process) *config.Rule {
	if len(d.config.Rules) == 0 {
		return nil
	}
	number := strconv.FormatUint(uint64(p.UID), 10)
	name := number
	if u, err := user.LookupId(number); err == nil {
		name = u.Username
	}
	for i := range d.config.Rules {
		if r := &d.config.Rules[i]; matches(r, &p, name, number) {
			return r
		}
	}
	return nil
}

// matches reports whether all patterns of a rule hold for a process, whose user has a name and a number.
func matches(r *config.Rule, p *discovery.Process, name, number string) bool {
	is := func(pattern string, texts ...string) bool {
		return pattern == "" || slices.ContainsFunc(texts, func(text string) bool {
			ok, err := path.Match(pattern, text)
			return ok && err == nil
		})
	}
	for key, pattern := range r.Labels {
		value, has := p.Labels[key]
		if !has || pattern != value && !is(pattern, value) {
			return false
		}
	}
	return is(r.Executable, p.Path, path.Base(p.Path)) && is(r.User, name, number) && is(r.Cgroup, p.Cgroup) && is(r.Unit, p.Unit) && is(r.Service, p.Service)
}

// chooses reports whether a process is to be profiled.
func (d *Daemon) chooses(p discovery.Process) bool {
	r := d.rule(p)
	return r == nil || *r.Profile
}

// terms are those on which a process is measured.
func (d *Daemon) terms(p discovery.Process) engine.Terms {
	const percent = 1. / 100
	t := engine.Terms{MaxOverhead: d.config.ProcessOverhead * percent}
	if r := d.rule(p); r != nil {
		t.Without = r.Without
		if r.Overhead != nil {
			t.MaxOverhead = *r.Overhead * percent
		}
	}
	return t
}
