package machinecode

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"ccagent/profile"
	"ccagent/profile/columns"
)

// Listing is the code of a function with the samples on it.
type Listing struct {
	Name     string
	Share    float64 // of the selection
	Samples  uint64
	Ranges   []Range // by weight, largest first
	Omitted  int     // ranges with samples that are left out
	Problems []string
}

// Range is code that lies in one piece.
type Range struct {
	Procedure string
	Path      string // of the file
	Lo, Hi    uint64 // its addresses
	Guessed   bool   // the log has the code's beginning only: Hi is beyond the last sample
	Weight    uint64
	Share     float64
	Lines     []Line // nil if the code could not be read
}

// Line is an instruction with what its samples weigh. Samples lie on the instruction that was to be
// executed next.
type Line struct {
	Instruction
	Weight, Samples uint64
	Share           float64
	File            string // of the source that its block is of; empty if that is not known
	FileID          columns.FileID
	Row             uint32
	Source          string // the text of that line; empty if the log has none
}

// What a listing shows at most.
const (
	maxRanges  = 16
	afterGuess = 64 // bytes beyond the last sample where the end of the code is not known
)

// LookupError says that no function has the name.
type LookupError struct{ Query string }

func (e *LookupError) Error() string {
	return fmt.Sprintf("no code of the selection is of %q; ccview hot lists names", e.Query)
}

type rangeKey struct {
	module uint32
	lo     uint64
}

type sampled struct {
	Range
	module uint32
	at     map[uint64]*Line // by address
}

// Of lists the code whose samples share an element, given by its name, or that is of a procedure or symbol of that
// name. file opens the file of a module.
func Of(s *profile.Selection, query string, file func(*columns.Module) (*File, func(), error)) (*Listing, error) {
	p := s.Profile
	var element profile.ElementID = profile.NoElement
	for _, e := range p.Elements(profile.LevelBinding) {
		if e.Name == query {
			element = e.ID
		}
	}
	ranges, texts := map[rangeKey]*sampled{}, sources{}
	out := &Listing{Name: query}
	total := uint64(0)
	for site, n := range s.Count {
		if n == 0 || p.Sites[site].Kernel || s.Leaf[site] == 0 {
			continue
		}
		place := p.Nodes.Place[s.Leaf[site]]
		if p.Places[place].Class != columns.PlaceUser {
			continue
		}
		owner := &p.Symbols.Bindings[p.Owner(place)]
		if owner.QualifiedName() != query && owner.Symbol != query &&
			(element == profile.NoElement || !slices.Contains(s.LeafElements(profile.LevelBinding, site), element)) {
			continue
		}
		addr, module, loc := p.Places[place].Addr, p.Places[place].Module, &p.Locations[place]
		r := Range{Procedure: owner.QualifiedName(), Lo: addr - min(loc.Offset, addr), Guessed: true}
		if loc.Block != 0 {
			b := &p.Symbols.Blocks[loc.Block]
			r.Lo, r.Hi, r.Guessed = b.Lo, b.Hi, false
		}
		k := rangeKey{module, r.Lo}
		x := ranges[k]
		if x == nil {
			x = &sampled{Range: r, module: module, at: map[uint64]*Line{}}
			ranges[k] = x
		}
		if x.Guessed {
			x.Hi = max(x.Hi, addr+afterGuess)
		}
		l := x.at[addr]
		if l == nil {
			l = &Line{}
			if f, row := p.Position(columns.PlaceID(place)); f != 0 {
				l.File, l.FileID, l.Row, l.Source = p.File(f).Path, f, row, texts.line(p, f, row)
			}
			x.at[addr] = l
		}
		l.Weight, l.Samples = columns.SatAdd(l.Weight, s.Weight[site]), l.Samples+n
		x.Weight = columns.SatAdd(x.Weight, s.Weight[site])
		total, out.Samples = columns.SatAdd(total, s.Weight[site]), out.Samples+n
	}
	if len(ranges) == 0 {
		return nil, &LookupError{query}
	}
	out.Share = s.Fraction(total)
	var all []*sampled
	for _, x := range ranges {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b *sampled) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.module, b.module), cmp.Compare(a.Lo, b.Lo))
	})
	out.Omitted = max(0, len(all)-maxRanges)
	files := map[uint32]*File{}
	for _, x := range all[:len(all)-out.Omitted] {
		f, ok := files[x.module]
		m := moduleOf(p, x.module)
		if !ok {
			err := fmt.Errorf("the log does not say which file has the code at %#x", x.Lo)
			if m != nil {
				var done func()
				f, done, err = file(m)
				defer done()
			}
			if err != nil {
				f = nil
				out.Problems = append(out.Problems, err.Error())
			}
			files[x.module] = f
		}
		if m != nil {
			x.Path = m.Path
		}
		x.Share = s.Fraction(x.Weight)
		if f != nil {
			if err := x.decode(f); err != nil {
				out.Problems = append(out.Problems, err.Error())
			}
		}
		if x.Lines == nil {
			x.bare()
		}
		for i := range x.Lines {
			x.Lines[i].Share = s.Fraction(x.Lines[i].Weight)
		}
		out.Ranges = append(out.Ranges, x.Range)
	}
	return out, nil
}

// sources are the lines of the files of source that were looked at.
type sources map[columns.FileID][]string

func (t sources) line(p *profile.Profile, f columns.FileID, row uint32) string {
	lines, ok := t[f]
	if !ok {
		lines = strings.Split(string(p.File(f).Text), "\n")
		t[f] = lines
	}
	if row == 0 || int(row) > len(lines) {
		return ""
	}
	return strings.TrimSpace(lines[row-1])
}

func moduleOf(p *profile.Profile, id uint32) *columns.Module {
	for i := range p.Modules {
		if p.Modules[i].ID == id {
			return &p.Modules[i]
		}
	}
	return nil
}

// decode fills in the instructions of a range.
func (x *sampled) decode(f *File) error {
	code, err := f.Code(x.Lo, x.Hi)
	if err != nil {
		return err
	}
	for _, in := range Decode(f.Arch, code, x.Lo, nil) {
		l := Line{Instruction: in}
		if got := x.at[in.Addr]; got != nil {
			got.Instruction = in
			l = *got
			delete(x.at, in.Addr)
		}
		x.Lines = append(x.Lines, l)
	}
	for addr, l := range x.at { // inside of what was decoded as one instruction, or beyond what was read
		l.Addr, l.Text = addr, "(no instruction begins here)"
		x.Lines = append(x.Lines, *l)
	}
	slices.SortStableFunc(x.Lines, func(a, b Line) int { return cmp.Compare(a.Addr, b.Addr) })
	return nil
}

// bare lists the addresses with samples where there is no code to show.
func (x *sampled) bare() {
	for addr, l := range x.at {
		l.Addr = addr
		x.Lines = append(x.Lines, *l)
	}
	slices.SortFunc(x.Lines, func(a, b Line) int { return cmp.Compare(a.Addr, b.Addr) })
}

// OnDisk opens a module's file where the log says that it is; instead, if not empty, is where one of
// them lies now.
func OnDisk(instead string) func(*columns.Module) (*File, func(), error) {
	return func(m *columns.Module) (*File, func(), error) {
		if instead != "" {
			f, done, err := Open(instead, m)
			if err == nil {
				return f, done, nil
			}
			if !errors.Is(err, ErrOtherBuild) {
				return nil, func() {}, err
			}
		}
		f, done, err := Open(m.Path, m)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = fmt.Errorf("%s, which has the code, is not here; ccview code --binary PATH shows it", m.Path)
		case errors.Is(err, ErrOtherBuild):
			err = fmt.Errorf("%w; ccview code --binary PATH shows that one", err)
		}
		return f, done, err
	}
}

// Closed opens no file, and gives the reason as the error.
func Closed(why string) func(*columns.Module) (*File, func(), error) {
	return func(m *columns.Module) (*File, func(), error) {
		return nil, func() {}, fmt.Errorf("%s, which has the code, is not read: %s", m.Path, why)
	}
}
