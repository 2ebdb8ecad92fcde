package closures

import (
	"fmt"
	"strings"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// Grouping says what a band is of what was live at a census.
type Grouping uint8

// Groupings, the first as the log's own heap profile has them.
const (
	ByType Grouping = iota
	ByKind          // thunks, functions, values, stacks, …
	BySpan          // closures of one kind that are written at one place
	ByBinding
	ByFile
	ByModule
	ByPackage
	groupings
)

var groupingNames = [groupings]string{"type", "kind", "span", "binding", "file", "module", "package"}

func (g Grouping) String() string { return groupingNames[min(g, groupings-1)] }

// Next is the grouping after one, of all in turn.
func Next(g Grouping) Grouping { return (g + 1) % groupings }

// What describes the bands.
func (g Grouping) What() string {
	return [groupings]string{"closure type", "kind", "source", "binding", "file", "module", "package"}[min(g, groupings-1)]
}

// ParseGrouping parses a grouping's name.
func ParseGrouping(s string) (Grouping, error) {
	for g, name := range groupingNames {
		if name == s {
			return Grouping(g), nil
		}
	}
	return 0, fmt.Errorf("unknown level %q of the heap: choose type, kind, span, binding, file, module or package", s)
}

// Names of bands that are of no info table.
const (
	PinnedArrays = "(pinned byte arrays)"
	Rare         = "(kinds of closures that are not listed)"
)

// A Choice chooses closures by their index, or PinnedKind or RestKind of package columns; nil chooses all.
type Choice func(closure uint32) bool

// Named chooses closures whose band by closure type or kind has a text in its name.
func Named(p *profile.Profile, text string) Choice {
	text = strings.ToLower(text)
	in := func(name string) bool { return strings.Contains(strings.ToLower(name), text) }
	return func(closure uint32) bool {
		return in(band(p, closure, ByType).Name) || in(band(p, closure, ByKind).Name)
	}
}

// Within chooses the closures of one band, by its title.
func Within(p *profile.Profile, by Grouping, title string) Choice {
	return func(closure uint32) bool {
		b := band(p, closure, by)
		return b.Title() == title
	}
}

// Live divides a log's heap profile, whose censuses were counted by info table, into other bands, of closures that are chosen.
func Live(p *profile.Profile, h *columns.HeapProfile, by Grouping, chosen Choice) *columns.HeapProfile {
	return h.Regroup(by.What(), func(closure uint32) (columns.HeapBand, bool) {
		if chosen != nil && !chosen(closure) {
			return columns.HeapBand{}, false
		}
		return band(p, closure, by), true
	})
}

// band is the band of a closure.
func band(p *profile.Profile, closure uint32, by Grouping) columns.HeapBand {
	named := func(name string) columns.HeapBand { return columns.HeapBand{Name: name} }
	switch {
	case closure == columns.RestKind || int(closure) >= len(p.Nurseries.Closures) && closure != columns.PinnedKind:
		return named(Rare)
	case closure == columns.PinnedKind && by == ByType:
		return named(ghc.ArrWords.String())
	case closure == columns.PinnedKind && by == ByKind:
		return named("pinned byte arrays")
	case closure == columns.PinnedKind:
		return named(PinnedArrays)
	}
	c := &p.Nurseries.Closures[closure]
	switch by {
	case ByType:
		if c.Type.In(ghc.Constr, ghc.ConstrNoCAF) {
			return named(c.Name)
		}
		return named(eventlog.CleanName(c.Type.String()))
	case ByKind:
		return named(kindOf(c.Type))
	}
	r := Describe(p, closure)
	b := columns.HeapBand{Name: r.Name, FileID: r.FileID, Span: r.Span}
	if r.Kind != "" && r.Kind != "constructor" {
		b.Name = r.Kind + " " + r.Name
	}
	code := p.Code(c.Place)
	whole := strings.HasPrefix(r.Name, "(") && r.Kind == "" // a type of the run-time system's own
	switch {
	case by == BySpan:
		b.Where = r.Where()
		return b
	case by == ByBinding, whole:
		return b
	case r.Kind != "constructor" && code.Kind == profile.KindCategory && p.MadeIn(c.Place) == nil: // the run-time system's own
		return named(code.Name)
	case by == ByFile && r.File != "":
		return columns.HeapBand{Name: r.File, FileID: r.FileID}
	case by == ByFile && r.Module != "":
		return named("module " + r.Module)
	case by == ByModule && r.Module != "":
		return named(r.Module)
	case r.Package != "" && by == ByPackage:
		return named(r.Package)
	case r.Package != "":
		return named("package " + r.Package)
	}
	return named(noSource)
}

// noSource names closures of whose code nothing is known.
const noSource = "(code without a name)"

// kindOf is what closures of a type are, in words.
func kindOf(t ghc.ClosureType) string {
	switch {
	case t.In(ghc.Thunk, ghc.ThunkSelector), t == ghc.AP, t == ghc.APStack:
		return "thunks"
	case t == ghc.Blackhole, t == ghc.Ind:
		return "evaluated thunks"
	case t.In(ghc.Constr, ghc.ConstrNoCAF):
		return "values of data types"
	case t.In(ghc.Fun, ghc.FunStatic), t == ghc.PAP:
		return "functions"
	case t == ghc.ArrWords:
		return "byte arrays"
	case t.In(ghc.MutArr, ghc.MutArrFrozen), t.In(ghc.SmallArr, ghc.SmallArrFrozen):
		return "arrays"
	case t.In(ghc.MVar, ghc.TVar), t.In(ghc.MutVar, ghc.MutVarDirty):
		return "mutable variables"
	case t == ghc.Stack:
		return "stacks"
	case t == ghc.TSO:
		return "threads"
	}
	return "other objects of the run-time system"
}
