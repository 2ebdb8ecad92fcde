package heap

import (
	"slices"
	"strings"

	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/ui/model"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
)

// mode is what the screen shows: bands over time, or a table of one census.
type mode uint8

const (
	bandsMode     mode = iota
	memoryMode         // where the process's memory is
	retainedMode       // what keeps what alive
	growthMode         // what keeps alive what has come since an earlier census
	allocatedMode      // what was allocated, and what of it is alive
	changesMode        // which bands differ between two logs
)

func (m mode) String() string {
	return [...]string{"bands", "memory", "retained", "growth", "allocated", "changes"}[m]
}

// modes are those that the log has something for; bands, or the reason why there are none, are always
// among them.
func modes(c *screen.Context) []mode {
	all := []mode{bandsMode}
	if len(c.Profile.Footprints) > 0 {
		all = append(all, memoryMode)
	}
	if len(c.Profile.HeapGraphs) > 0 {
		all = append(all, retainedMode)
	}
	if before, after := compared(c.Compared); before != nil {
		if len(before.HeapGraphs) > 0 && len(after.HeapGraphs) > 0 {
			all = append(all, growthMode)
		}
		if len(before.HeapProfiles) > 0 && len(after.HeapProfiles) > 0 {
			all = append(all, changesMode)
		}
	}
	if p := c.Profile; len(p.Nurseries.Blocks) > 0 && divides(p) {
		all = append(all, allocatedMode)
	}
	return all
}

// compared are the logs of an earlier and a later census; nil if one log is open.
func compared(c *screen.Compared) (before, after *profile.Profile) {
	if c == nil {
		return nil, nil
	}
	before, _ = c.First(screen.SideA)
	after, _ = c.First(screen.SideB)
	return before, after
}

// hasAny reports whether the log has anything of the heap.
func hasAny(c *screen.Context) bool {
	return len(c.Profile.HeapProfiles) > 0 || len(c.Profile.GCs) > 0 || len(modes(c)) > 1
}

// changes are which bands differ between the logs that are compared, at a level.
func changes(c *screen.Compared, level closures.Grouping) BandChanges {
	r := BandChanges{Level: level}
	r.A, r.NameA = c.First(screen.SideA)
	r.B, r.NameB = c.First(screen.SideB)
	return r
}

// firstLevel is what bands of the logs that are compared are at first.
func firstLevel(c *screen.Compared) closures.Grouping {
	before, after := compared(c)
	switch {
	case before == nil:
		return closures.ByType
	case c.Bands != nil:
		return *c.Bands
	}
	return FirstLevel(before, after)
}

// FirstLevel is what bands of two logs are compared by where nobody says: where their closures are written, if both logs know that.
func FirstLevel(before, after *profile.Profile) closures.Grouping {
	if divides(before) && divides(after) {
		return closures.BySpan
	}
	return closures.ByType
}

// divides reports whether the bands of a log's first heap profile can be divided otherwise.
func divides(p *profile.Profile) bool {
	return len(p.HeapProfiles) > 0 && p.HeapProfiles[0].HasKinds()
}

// hasBranches reports whether a mode's rows are a tree.
func (m mode) hasBranches() bool { return m == retainedMode || m == growthMode }

// firstMode is what the screen begins with.
func firstMode(c *screen.Context) mode {
	all := modes(c)
	switch {
	case slices.Contains(all, growthMode):
		return growthMode
	case slices.Contains(all, changesMode):
		return changesMode
	case len(c.Profile.HeapProfiles) == 0 && len(c.Profile.GCs) == 0:
		return all[len(all)-1]
	}
	return bandsMode
}

// mode is what is shown: what was chosen, as long as the log has it.
func (s *Screen) mode() mode {
	if slices.Contains(modes(s.c), s.chosen) {
		return s.chosen
	}
	return bandsMode
}

// nextMode goes to the next heap profile of the log, or to the next mode.
func (s *Screen) nextMode() string {
	if h := s.latest(); s.mode() == bandsMode && h != nil && s.choice.Profile+1 < h.Profiles {
		s.choice = part{Profile: s.choice.Profile + 1}
		return ""
	}
	all := modes(s.c)
	s.chosen = all[(slices.Index(all, s.mode())+1)%len(all)]
	s.choice = part{}
	if len(all) == 1 {
		return ""
	}
	return [...]string{"what was live, by bands", "where the memory of the process is", "what keeps what alive", "what keeps alive what has come since the earlier census", "what is allocated, and what of it survives", "which bands differ between A and B"}[s.chosen]
}

// whyNoMode says why there is no other mode; empty if there is one.
func (s *Screen) whyNoMode() string {
	if h := s.latest(); len(modes(s.c)) > 1 || h != nil && h.Profiles > 1 {
		return ""
	}
	return "the log has this alone: ccagent heap PID has where memory is, with --graph also what keeps it alive"
}

// modeNames are the modes in the title of a box, that which is shown in brackets; empty if there is one.
func (s *Screen) modeNames() string {
	all := modes(s.c)
	if len(all) == 1 {
		return ""
	}
	names := make([]string, len(all))
	for i, m := range all {
		if names[i] = m.String(); m == s.mode() {
			names[i] = "[" + names[i] + "]"
		}
	}
	return "M " + strings.Join(names, " ")
}

// tablePart asks for the table of a mode.
type tablePart struct {
	mode     mode
	compared *screen.Compared
	bands    bands // in mode bandsMode; in changesMode its level
}

// Compute implements model.Part; it gives a *listing.
func (t tablePart) Compute(in *model.Input) (any, error) {
	return model.Recall(in.Engine, t, func() *listing {
		switch t.mode {
		case memoryMode:
			return memoryListing(in.Profile())
		case retainedMode:
			return retainedListing(in.Profile())
		case allocatedMode:
			return fatesListing(in.Profile())
		case changesMode:
			return changesListing(changes(t.compared, t.bands.level), in.Profile())
		}
		before, after := compared(t.compared)
		return growthListing(RetainedGrowth{Before: before, After: after})
	}), nil
}

// report is the text of what a mode shows.
func (t tablePart) report(p *profile.Profile) printer.Report {
	switch t.mode {
	case memoryMode:
		return RSS{Profile: p}
	case retainedMode:
		return Retained{Profile: p}
	case allocatedMode:
		return FatesReport{Profile: p}
	case changesMode:
		return changes(t.compared, t.bands.level)
	case growthMode:
		before, after := compared(t.compared)
		return RetainedGrowth{Before: before, After: after}
	}
	return Report{Profile: p, Number: t.bands.profile, Level: t.bands.level, in: t.bands.in}
}
