package centres

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ccagent/profile"
	"ccagent/profile/centres"
	"ccagent/profile/columns"
	"ccagent/ui/model"
)

// Choice says which cost centres are chosen, and how samples are
// attributed to them. It is comparable.
type Choice struct {
	Mode centres.Mode
	// Set is a set file's text; Dropped the names taken out of it, sorted, a
	// line each.
	Set, Dropped string
}

// Drop gives the choice with other centres taken out.
func (c Choice) Drop(names map[string]bool) Choice {
	c.Dropped = strings.Join(slices.Sorted(maps.Keys(names)), "\n")
	return c
}

// IsDropped are the names taken out; the map is the caller's.
func (c Choice) IsDropped() map[string]bool {
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
	Choice Choice
	// Rows are chosen centres and those dropped; in modes with stacks the stacks,
	// depth first.
	Rows []CentreRow
	// All are the names of the set's centres that have samples, chosen or not.
	All []string
	// Sum is that of the individual figures.
	Sum                           float64
	Own, Subsumed, Forced, Pseudo float64
	Gap, Deep                     float64
	Centres                       int // with samples
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
	// PlusMinus and InheritedPlusMinus are how far the 95 % intervals of Individual and
	// Inherited reach to their further side. Tied: see centres.Sure.
	PlusMinus, InheritedPlusMinus float64
	Tied                          bool
	// Before is the individual figure with all centres of the set chosen: the difference
	// to Individual comes from dropped centres. Stacks have none.
	Before         float64
	Chosen, Pseudo bool
}

// centreData is what an engine keeps of a set.
type centreData struct {
	set centres.Set
	all *centres.Found
	err error
}

func centreSet(e *model.Engine, text string) *centreData {
	return model.Recall(e, text, func() *centreData {
		d := &centreData{}
		if d.set, d.err = centres.ParseSet(text); d.err == nil {
			d.all = centres.Find(e.Profile(), d.set)
		}
		return d
	})
}

// SetFile is the text of a set file with the chosen centres.
func (c Choice) SetFile(p *profile.Profile) (string, error) {
	set, err := centres.ParseSet(c.Set)
	if err != nil {
		return "", err
	}
	return centres.Find(p, set).Chosen(set, c.IsDropped()).Format(), nil
}

// Compute implements model.Part; it gives *CostCentres.
func (c Choice) Compute(in *model.Input) (any, error) {
	type key struct {
		model.Samples
		Choice
	}
	type answer struct {
		cc  *CostCentres
		err error
	}
	a := model.Recall(in.Engine, key{in.Samples, c}, func() answer {
		cc, err := costCentres(in, c)
		return answer{cc, err}
	})
	return a.cc, a.err
}

// costCentres computes a choice's figures.
func costCentres(in *model.Input, c Choice) (*CostCentres, error) {
	sel := in.Selection
	d := centreSet(in.Engine, c.Set)
	if d.err != nil {
		return nil, fmt.Errorf("choose cost centres: %w", d.err)
	}
	attribute := func(dropped string) *centres.Costs {
		type key struct {
			model.Samples
			Choice
		}
		to := Choice{Mode: c.Mode, Set: c.Set, Dropped: dropped}
		return model.Recall(in.Engine, key{in.Samples, to}, func() *centres.Costs {
			return centres.Attribute(sel, d.all.Without(to.IsDropped()), c.Mode)
		})
	}
	whole := attribute("")
	cc := whole
	if c.Dropped != "" {
		cc = attribute(c.Dropped)
	}
	out := &CostCentres{
		Choice: c, Own: sel.Fraction(cc.Own), Subsumed: sel.Fraction(cc.Subsumed), Forced: sel.Fraction(cc.Forced),
		Pseudo: sel.Fraction(cc.Pseudo), Gap: sel.Fraction(cc.Gap), Deep: sel.Fraction(cc.Deep), Expensive: cc.MostExpensive(), Notes: in.Profile().HasNotes(),
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
	sure := sureRows(sel, cc)
	for i := range cc.Rows {
		r := &cc.Rows[i]
		sum += r.Individual
		row := centreRow(in.Engine, r.Centre)
		row.Parent, row.Chosen = r.Parent, !r.Centre.Pseudo
		row.Individual, row.Inherited, row.Forced = sel.Fraction(r.Individual), sel.Fraction(r.Inherited), sel.Fraction(r.Forced)
		row.PlusMinus, row.Tied = sure[i].Individual.PlusMinus(row.Individual), sure[i].Tied
		row.InheritedPlusMinus = sure[i].Inherited.PlusMinus(row.Inherited)
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
			row := centreRow(in.Engine, r.Centre)
			row.Parent, row.Before = -1, before[row.Name]
			out.Rows = append(out.Rows, row)
		}
	}
	return out, nil
}

// leastSure is the part of the samples below which intervals are not computed: there may be very
// many stacks of one sample.
const leastSure = 0.0005

// sureRows returns how sure rows are; for those that are not worth it, the zero Sure.
func sureRows(sel *profile.Selection, cc *centres.Costs) []centres.Sure {
	out := make([]centres.Sure, len(cc.Rows))
	var positions []int
	for i := range cc.Rows {
		if sel.Fraction(cc.Rows[i].Inherited) >= leastSure {
			positions = append(positions, i)
		}
	}
	for k, sure := range cc.Sure(sel, positions) {
		out[positions[k]] = sure
	}
	return out
}

func centreRow(e *model.Engine, c *centres.Centre) CentreRow {
	row := CentreRow{Name: c.Name, Module: c.Module, Package: c.Package, Level: c.Level(), Path: c.File, Line: int(c.Extent.Line), Pseudo: c.Pseudo}
	if c.File != "" {
		row.File = model.Recall(e, struct{}{}, func() map[string]columns.FileID {
			files := make(map[string]columns.FileID)
			for f := range e.Profile().Files() {
				files[e.Profile().File(columns.FileID(f)).Path] = columns.FileID(f)
			}
			return files
		})[c.File]
	}
	return row
}

// attribute attributes a selection's samples as chosen. It uses no engine, so that
// exports can call it in the background.
func (c Choice) attribute(s *profile.Selection) (*centres.Costs, error) {
	set, err := centres.ParseSet(c.Set)
	if err != nil {
		return nil, fmt.Errorf("choose cost centres: %w", err)
	}
	return centres.Attribute(s, centres.Find(s.Profile, set).Without(c.IsDropped()), c.Mode), nil
}
