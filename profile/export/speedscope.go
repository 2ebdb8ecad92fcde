package export

import (
	"io"

	"ccagent/profile"
	"ccagent/profile/stacks"
)

// Speedscope writes a sampled profile for each pair of event and thread, or with
// Options.Merged for each event. Weights are in the event's unit; consecutive samples
// with the same stack are merged.
func Speedscope(w io.Writer, ss []*profile.Selection, o Options) error {
	p := ss[0].Profile
	frames := newFrameIDs()
	for _, s := range ss {
		speedscopeFrames(s, frames)
	}
	j := newJSONWriter(w)
	j.open("{")
	j.field("$schema", "https://www.speedscope.app/file-format-schema.json")
	j.field("name", commandLine(p))
	j.field("exporter", o.Program)
	j.field("activeProfileIndex", 0)
	j.key("shared")
	j.open("{")
	j.array("frames")
	for _, f := range frames.frames {
		j.open("{")
		j.field("name", f.Name)
		if f.File != "" {
			j.field("file", f.File)
		}
		if f.Line != 0 {
			j.field("line", f.Line)
		}
		j.close("}")
	}
	j.close("]")
	j.close("}")
	j.array("profiles")
	labels := names(p)
	for _, s := range ss {
		event := s.EventDef().Name()
		if o.Merged {
			var all []sample
			for site, smp := range s.EachSample() {
				all = append(all, sample{smp.Time, smp.Weight, site})
			}
			sortByTime(all)
			speedscopeProfile(j, s, event, all, frames)
			continue
		}
		order, samples := byThread(s)
		for _, t := range order {
			name := labels[t]
			if len(ss) > 1 {
				name += ", " + event
			}
			speedscopeProfile(j, s, name, samples[t], frames)
		}
	}
	j.close("]")
	j.close("}")
	j.raw("\n")
	return j.flush()
}

// speedscopeFrames numbers the frames of all stacks of a selection.
func speedscopeFrames(s *profile.Selection, frames *frameIDs) {
	walker := stacks.NewWalker(s, false)
	seen := make([]bool, len(s.Profile.Sites))
	for site := range s.EachSample() {
		if seen[site] {
			continue
		}
		seen[site] = true
		for _, f := range stackOf(walker, site) {
			frames.of(f.Frame)
		}
	}
}

func speedscopeUnit(unit string) string {
	switch unit {
	case "ns":
		return "nanoseconds"
	case "bytes":
		return "bytes"
	}
	return "none"
}

func speedscopeProfile(j *jsonWriter, s *profile.Selection, name string, samples []sample, frames *frameIDs) {
	merged := samples[:0:0]
	total := uint64(0)
	for _, smp := range samples {
		total += smp.weight
		if n := len(merged); n > 0 && merged[n-1].site == smp.site {
			merged[n-1].weight += smp.weight
			continue
		}
		merged = append(merged, smp)
	}
	j.open("{")
	j.field("type", "sampled")
	j.field("name", name)
	j.field("unit", speedscopeUnit(s.EventDef().Unit))
	j.field("startValue", 0)
	j.field("endValue", total)
	j.array("samples")
	walker := stacks.NewWalker(s, false)
	for _, smp := range merged {
		stack := stackOf(walker, smp.site)
		j.open("[")
		for i := len(stack) - 1; i >= 0; i-- {
			j.int(int64(frames.of(stack[i].Frame)))
		}
		j.close("]")
	}
	j.close("]")
	j.array("weights")
	for _, smp := range merged {
		j.uint(smp.weight)
	}
	j.close("]")
	j.close("}")
}
