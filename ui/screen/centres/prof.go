package centres

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/centres"
	"ccagent/profile/columns"
	"ccagent/ui/printer"
)

// ProfReport prints cost centres as the report of +RTS -p is laid out, for
// scripts that read it: of time what the selection counts, of allocation what
// the log's event in bytes does, dots where it has none. Entries are not
// counted by sampling and are 0. Both are of ModeStacks, or of ModeExact: then what
// the run-time system spent for itself is left out, as GHC does. alloc may be nil.
func ProfReport(w io.Writer, s *profile.Selection, c *centres.Costs, alloc *centres.Costs, o printer.Options) error {
	p := newOut(w, printer.Options{})
	cap := &s.Profile.Capture
	stamp := time.Unix(0, int64(cap.StartUnixNs)).UTC().Format("Mon Jan _2 15:04 2006")
	p.Line("        " + stamp + " Time and Allocation Profiling Report  (Final)")
	p.Line("")
	args := []string{path.Base(cap.Program)}
	if len(cap.Args) > 1 {
		args = append(args, cap.Args[1:]...)
	}
	p.Line("           " + printer.Fit(strings.Join(args, " "), 0))
	p.Line("")
	sum := s.Summary()
	secs := fmt.Sprintf("%.2f %s", float64(sum.Total), printer.Fit(sum.Unit, 16))
	if sum.Unit == "ns" {
		secs = fmt.Sprintf("%.2f secs", float64(reported(c))/1e9)
	}
	interval := 0.0
	if sum.Samples > 0 && sum.Unit == "ns" {
		interval = float64(sum.Total) / float64(sum.Samples) / 1e3
	}
	p.Linef("        total time  = %18s   (%d ticks @ %.0f us, %d processors)", secs, sum.Samples, interval, max(1, cap.CPUs))
	total := uint64(0)
	if alloc != nil {
		total = reported(alloc)
	}
	p.Linef("        total alloc = %15s bytes  (excludes profiling overheads)", format.Commas(total))
	p.Line("")

	allocOf := make(map[string]*centres.Row)
	if alloc != nil {
		for i := range alloc.ByCentre {
			allocOf[alloc.ByCentre[i].Centre.Name] = &alloc.ByCentre[i]
		}
	}
	whole := reported(c)
	share := func(w uint64) float64 { return format.Ratio(w, whole) }
	pc := func(f float64) string { return fmt.Sprintf("%6.1f", 100*f) }
	allocShare := func(w uint64) float64 {
		if alloc == nil {
			return 0
		}
		return format.Ratio(w, reported(alloc))
	}

	// The flat list: what has at least one percent.
	flat := [][]string{{"COST CENTRE", "MODULE", "SRC", "%time %alloc"}, nil}
	for i := range c.ByCentre {
		r := &c.ByCentre[i]
		if unreported(c, r.Centre) {
			continue
		}
		t, a := share(r.Individual), 0.0
		if x := allocOf[r.Centre.Name]; x != nil {
			a = allocShare(x.Individual)
		}
		if t >= 0.01 || a >= 0.01 {
			flat = append(flat, append(profNames(r.Centre), pc(t)+pc(a)))
		}
	}
	byTime(flat[2:])
	p.table(flat)
	p.Line("")
	p.Line("")

	// The tree: every stack, by its centre, indented by its depth.
	type made struct{ individual, inherited uint64 }
	allocTree := make(map[string]made)
	if alloc != nil {
		inherited := reportedInherited(alloc)
		for i, key := range stackKeys(alloc) {
			allocTree[key] = made{alloc.Rows[i].Individual, inherited[i]}
		}
	}
	inherited := reportedInherited(c)
	keys := stackKeys(c)
	tree := [][]string{{"", "", "", "", "", "  individual      inherited"}, {"COST CENTRE", "MODULE", "SRC", "no.", "entries", "%time %alloc   %time %alloc"}, nil}
	depth := make([]int, len(c.Rows))
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Parent >= 0 {
			depth[i] = depth[r.Parent] + 1
		}
		if last := i+1 == len(c.Rows) || c.Rows[i+1].Parent != i; last && unreported(c, r.Centre) {
			continue
		}
		names := profNames(r.Centre)
		names[0] = strings.Repeat(" ", min(depth[i], 200)) + names[0]
		x := allocTree[keys[i]]
		ind, inh := allocShare(x.individual), allocShare(x.inherited)
		tree = append(tree, append(names, fmt.Sprint(i+1), "0", pc(share(r.Individual))+pc(ind)+"  "+pc(share(inherited[i]))+pc(inh)))
	}
	p.table(tree)
	return p.Flush()
}

// stackKeys identifies stacks by their centres' names.
func stackKeys(c *centres.Costs) []string {
	keys := make([]string, len(c.Rows))
	for i := range c.Rows {
		keys[i] = c.Rows[i].Centre.Name
		if up := c.Rows[i].Parent; up >= 0 {
			keys[i] = keys[up] + "\x00" + keys[i]
		}
	}
	return keys
}

// profNames are a centre's name, module and source as the report has them: one
// word each.
func profNames(c *centres.Centre) []string {
	word := func(s, empty string) string {
		s = strings.ReplaceAll(printer.Fit(s, 0), " ", "_")
		if s == "" {
			return empty
		}
		return s
	}
	name := c.Name
	if c.Module != "" {
		name = strings.TrimPrefix(name, c.Module+".")
	}
	src := "<no location info>"
	builtIn := c.Pseudo || c.Module == "" && (c.Name == "MAIN" || slices.Contains(rtsOwn, c.Name))
	if builtIn {
		src = "<built-in>"
	}
	if c.File != "" {
		src = word(c.File+":"+srcSpan(c.Extent), src)
	}
	module := word(c.Module, word(c.Package, "-"))
	if builtIn && c.Module == "" {
		module = word(c.Name, "-")
	}
	return []string{word(name, "-"), module, src}
}

// srcSpan writes an extent as GHC does, with the last column itself.
func srcSpan(x columns.Extent) string {
	last := max(x.EndCol, 1) - 1
	switch {
	case x.Line != x.EndLine:
		return fmt.Sprintf("(%d,%d)-(%d,%d)", x.Line, x.Col, x.EndLine, last)
	case last > x.Col:
		return fmt.Sprintf("%d:%d-%d", x.Line, x.Col, last)
	default:
		return fmt.Sprintf("%d:%d", x.Line, x.Col)
	}
}

func byTime(rows [][]string) {
	// Already by inherited weight; the report's list is by time.
	for i := 1; i < len(rows); i++ {
		for j := i; j > 0 && rows[j][3] > rows[j-1][3]; j-- {
			rows[j], rows[j-1] = rows[j-1], rows[j]
		}
	}
}

// table sets columns as wide as they need; a nil row is an empty line.
func (p out) table(rows [][]string) {
	var width []int
	for _, r := range rows {
		for i, s := range r[:max(0, len(r)-1)] {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(s))
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for i, s := range r {
			b.WriteString(s)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(s)+1))
			}
		}
		p.Line(b.String())
	}
}

// rtsOwn are the cost centres of the run-time system that the report of +RTS -p
// leaves out, and does not count in its totals.
var rtsOwn = []string{"GC", "SYSTEM", "OVERHEAD", "IDLE", "DONT_CARE"}

// unreported reports whether GHC's report leaves a centre out: of exact stacks, the
// run-time system's own cost and samples of unknown stacks.
func unreported(c *centres.Costs, x *centres.Centre) bool {
	return c.Mode == centres.ModeExact && (slices.Contains(rtsOwn, x.Name) || x.Pseudo && x.Module == "")
}

// reported is a report's total.
func reported(c *centres.Costs) uint64 {
	total := c.Total
	for i := range c.ByCentre {
		if r := &c.ByCentre[i]; unreported(c, r.Centre) {
			total -= min(total, r.Individual)
		}
	}
	return total
}

// reportedInherited is what a stack inherits of the reported.
func reportedInherited(c *centres.Costs) []uint64 {
	out := make([]uint64, len(c.Rows))
	for i := range c.Rows {
		out[i] = c.Rows[i].Inherited
	}
	for i := range c.Rows {
		if !unreported(c, c.Rows[i].Centre) {
			continue
		}
		for j := i; j >= 0; j = c.Rows[j].Parent {
			out[j] -= min(out[j], c.Rows[i].Individual)
		}
	}
	return out
}
