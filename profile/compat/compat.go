package compat

import (
	"errors"
	"fmt"
	"strings"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// Write writes derived events. Definitions are written before the events that use them.
type Write func(w *eventlog.Writer) error

var tools = []struct {
	name   string
	events func(ss []*profile.Selection) (Write, error)
}{
	{"hs-speedscope", hsSpeedscope},
	{"ghc-stack-profiler", stackProfiler},
	{"threadscope", threadScope},
	{"eventlog2html", eventlog2html},
}

// Names returns the names of the tools that Events supports.
func Names() []string {
	var names []string
	for _, t := range tools {
		names = append(names, t.name)
	}
	return names
}

// Events derives the events that a tool, or several separated by commas, needs from a log
// with the samples of these selections, one for each event.
func Events(list string, ss []*profile.Selection) (Write, error) {
	var all []Write
	for name := range strings.SplitSeq(list, ",") {
		found := false
		for _, t := range tools {
			if t.name == strings.TrimSpace(name) {
				found = true
				w, err := t.events(ss)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", t.name, err)
				}
				all = append(all, w)
			}
		}
		if !found {
			return nil, fmt.Errorf("unknown tool %q: choose %s", name, strings.Join(Names(), ", "))
		}
	}
	return func(w *eventlog.Writer) error {
		if err := program(w, ss[0].Profile); err != nil {
			return err
		}
		for _, f := range all {
			if err := f(w); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// errNoTime is the error for a log without an event that counts time or cycles.
var errNoTime = errors.New("the log has no event other than allocation")

// clock returns the selection whose samples measure time.
func clock(ss []*profile.Selection) (*profile.Selection, error) {
	for _, s := range ss {
		if !s.CountsBytes() && !s.EventDef().Waits() && s.Samples > 0 {
			return s, nil
		}
	}
	return nil, errNoTime
}

// program writes the RTS identifier, which readers require.
func program(w *eventlog.Writer, p *profile.Profile) error {
	if p.RTS != "" || p.Capture.GHCVersion == "" {
		return nil
	}
	return w.Write(0, eventlog.NoCap, &eventlog.RTSIdentifier{Text: "GHC-" + p.Capture.GHCVersion + " " + p.Capture.Way})
}

// capOf returns a sample's capability for an event's header: a number or eventlog.NoCap.
func capOf(s columns.Sample) int {
	if s.Capability == eventlog.NoCapability {
		return eventlog.NoCap
	}
	return int(s.Capability)
}

// name returns the label of the cost centre that stands for a frame.
func name(f *profile.Frame) string {
	if f.Name == "" {
		return "?"
	}
	return f.Name
}

// location returns "file:line", or the part of it that is known.
func location(f *profile.Frame) string {
	switch {
	case f.File == "":
		return "<no location info>"
	case f.Line == 0:
		return f.File
	}
	return fmt.Sprintf("%s:%d", f.File, f.Line)
}
