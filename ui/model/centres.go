package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ccagent/profile"
	"ccagent/profile/centres"
	"ccagent/profile/columns"
)

// CentreChoice says which cost centres are chosen, and how samples are
// attributed to them. It is comparable.
type CentreChoice struct {
	On   bool
	Mode centres.Mode
	// Set is a set file's text; Dropped the names taken out of it, sorted, a
	// line each.
	Set, Dropped string
}

// Drop gives the choice with other centres taken out.
func (c CentreChoice) Drop(names map[string]bool) CentreChoice {
	c.Dropped = strings.Join(slices.Sorted(maps.Keys(names)), "\n")
	return c
}

// IsDropped are the names taken out; the map is the caller's.
func (c CentreChoice) IsDropped() map[string]bool {
	out := make(map[string]bool)
	for name := range strings.SplitSeq(c.Dropped, "\n") {
		if name != "" {
			out[name] = true
		}
	}
	return out
}

// CostCentres are the figures of a choice. Fractions are of the kept weight.
type CostCentres struct {
	Choice CentreChoice
	// Rows are chosen centres and those dropped; in modes with stacks the stacks,
	// depth first.
	Rows []CentreRow
	// All are the names of the set's centres that have samples, chosen or not.
	All []string
	// Sum is that of the individual figures.
	Sum                           float64
	Own, Subsumed, Forced, Pseudo float64
	Gap, Deep                     float64
	Centres, Stacks               int // with samples
	Dropped                       int
	Missed                        []string
	Expensive                     int // the row with the largest individual figure; −1 if there is none
	Notes                         bool
}

// CentreRow is a centre, or a stack by its topmost centre.
type CentreRow struct {
	Name            string
	Module, Package string
	Level           profile.Level
	File            columns.FileID
	Path            string
	Line            int
	Parent          int // −1
	Kids            int
	Individual      float64
	Inherited       float64
	Forced          float64 // part of Individual
	// Before is the individual figure with all centres of the set chosen:
	// Individual less Before is what it bears for others. Stacks have none.
	Before         float64
	Samples        uint64
	Chosen, Pseudo bool
}

// centreData is what an engine keeps of a set.
type centreData struct {
	set centres.Set
	all *centres.Found
	err error
}

func (e *Engine) centreSet(text string) *centreData {
	return e.centres.get(text, func() *centreData {
		d := &centreData{}
		if d.set, d.err = centres.ParseSet(text); d.err == nil {
			d.all = centres.Find(e.p, d.set)
		}
		return d
	})
}

// SaveSet gives the text of a set file with what is chosen.
func (e *Engine) SaveSet(c CentreChoice) (string, error) {
	d := e.centreSet(c.Set)
	if d.err != nil {
		return "", d.err
	}
	return d.all.Chosen(d.set, c.IsDropped()).Format(), nil
}

// costCentres computes a choice's figures.
func (e *Engine) costCentres(sel *profile.Selection, base string, c CentreChoice) (*CostCentres, error) {
	d := e.centreSet(c.Set)
	if d.err != nil {
		return nil, fmt.Errorf("choose cost centres: %w", d.err)
	}
	attribute := func(dropped string) *centres.Costs {
		return e.attributed.get(fmt.Sprint(base, c.Mode, "\x00", c.Set, "\x00", dropped), func() *centres.Costs {
			return centres.Attribute(sel, d.all.Without(CentreChoice{Dropped: dropped}.IsDropped()), c.Mode)
		})
	}
	whole := attribute("")
	cc := whole
	if c.Dropped != "" {
		cc = attribute(c.Dropped)
	}
	out := &CostCentres{
		Choice: c, Own: sel.Fraction(cc.Own), Subsumed: sel.Fraction(cc.Subsumed), Forced: sel.Fraction(cc.Forced),
		Pseudo: sel.Fraction(cc.Pseudo), Gap: sel.Fraction(cc.Gap), Deep: sel.Fraction(cc.Deep), Expensive: cc.MostExpensive(), Notes: e.p.HasNotes(),
	}
	for _, m := range d.all.Missed {
		out.Missed = append(out.Missed, m.Error())
	}
	before := make(map[string]float64)
	dropped := c.IsDropped()
	for i := range whole.ByCentre {
		r := &whole.ByCentre[i]
		before[r.Centre.Name] = sel.Fraction(r.Individual)
		if r.Centre.Pseudo {
			continue
		}
		out.All = append(out.All, r.Centre.Name)
		if dropped[r.Centre.Name] {
			out.Dropped++
		}
	}
	out.Centres = len(out.All)
	sum := uint64(0)
	for i := range cc.Rows {
		r := &cc.Rows[i]
		sum += r.Individual
		row := e.centreRow(r.Centre)
		row.Parent, row.Samples, row.Chosen = r.Parent, r.Samples, !r.Centre.Pseudo
		row.Individual, row.Inherited, row.Forced = sel.Fraction(r.Individual), sel.Fraction(r.Inherited), sel.Fraction(r.Forced)
		if r.Individual > 0 {
			out.Stacks++
		}
		if r.Parent >= 0 {
			out.Rows[r.Parent].Kids++
		}
		if !c.Mode.Stacks() {
			row.Before = before[row.Name]
		}
		out.Rows = append(out.Rows, row)
	}
	out.Sum = sel.Fraction(sum)
	for i := range whole.ByCentre {
		if r := &whole.ByCentre[i]; dropped[r.Centre.Name] && !r.Centre.Pseudo {
			row := e.centreRow(r.Centre)
			row.Parent, row.Before = -1, before[row.Name]
			out.Rows = append(out.Rows, row)
		}
	}
	return out, nil
}

func (e *Engine) centreRow(c *centres.Centre) CentreRow {
	row := CentreRow{Name: c.Name, Module: c.Module, Package: c.Package, Level: c.Level(), Path: c.File, Line: int(c.Extent.Line), Pseudo: c.Pseudo}
	if c.File != "" {
		if e.files == nil {
			e.files = make(map[string]columns.FileID)
			for f := range e.p.Files() {
				e.files[e.p.File(columns.FileID(f)).Path] = columns.FileID(f)
			}
		}
		row.File = e.files[c.File]
	}
	return row
}

// Attribute attributes a selection's samples as chosen. It does without an
// engine, for what runs beside one.
func Attribute(s *profile.Selection, c CentreChoice) (*centres.Costs, error) {
	set, err := centres.ParseSet(c.Set)
	if err != nil {
		return nil, fmt.Errorf("choose cost centres: %w", err)
	}
	return centres.Attribute(s, centres.Find(s.Profile, set).Without(c.IsDropped()), c.Mode), nil
}
