package dwarfindex

import (
	"context"
	"debug/dwarf"
	"fmt"
	"path"
)

// Inlined is a function that was inlined at an address, or the one that it was
// inlined into at last.
type Inlined struct {
	// Name is the linkage name where there is one, else with its namespaces and classes: static functions of C++ have none. It is empty for the
	// function that has the code.
	Name string
	File string // where it is at the address: the call's place, of all but the innermost
	Line uint32
}

// Limits of a search for inlined functions.
const (
	maxInlineDepth   = 64
	maxInlineEntries = 1 << 22 // entries looked at, in all
	maxScope         = 1 << 10 // bytes of a function's scope
	maxScopes        = 1 << 24 // bytes of all scopes of a unit
)

// inliner reads the functions of a unit of another compiler's by debug/dwarf, which knows
// their dialects.
type inliner struct {
	d         *dwarf.Data
	functions []function
	files     []*dwarf.LineFile
	names     map[dwarf.Offset]string
	scopes    map[dwarf.Offset]string // by the entry of a function, what its name is to be preceded by: "geo::Point::"
	room      int                     // bytes that further scopes may have
	compDir   string
}

// function is a function's code, or code inlined into it.
type function struct {
	ranges   [][2]uint64
	name     dwarf.Offset // entry that has the name
	file     int64        // of the call
	line     uint32
	children []function
}

// Inlines finds the chains of inlined functions at addresses, innermost first,
// that lie in units which are not GHC's. The last of a chain has no name: it is
// the function whose symbol covers the code. Addresses where nothing is inlined
// are left out. extra holds .debug_ranges and the sections of DWARF 5 by name. Only the units
// that have the addresses are read, or all of .debug_info where such a unit may refer to others.
// What is read is at most limit bytes at a time; an error says that some was left out.
func Inlines(ctx context.Context, s Sections, extra map[string][]byte, places map[uint64]Place, limit uint64) (out map[uint64][]Inlined, err error) {
	out = map[uint64][]Inlined{}
	units := map[uint64][]uint64{} // addresses, by the offsets of units
	for addr, p := range places {
		units[p.unit] = append(units[p.unit], addr)
	}
	x := inlines{s: s, extra: extra, limit: limit}
	for off, addrs := range units {
		if ctx.Err() != nil || x.entries > maxInlineEntries {
			break
		}
		if unitErr := x.unit(off, addrs, places, out); unitErr != nil && err == nil {
			err = fmt.Errorf("read inlined functions: %w", unitErr)
		}
	}
	return out, err
}

// inlines is a search for inlined functions.
type inlines struct {
	s       Sections
	extra   map[string][]byte
	limit   uint64
	entries int // looked at
	whole   []byte
}

// unit adds the chains at addresses of the unit at an offset.
func (x *inlines) unit(off uint64, addrs []uint64, places map[uint64]Place, out map[uint64][]Inlined) (err error) {
	// The parser is for well-formed files; these may be crafted.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	info, err := x.bytes(off)
	if err != nil {
		return err
	}
	d, err := dwarf.New(x.s.Abbrev, nil, nil, info, x.s.Line, nil, x.extra[".debug_ranges"], x.s.Str)
	if err != nil {
		return err
	}
	for _, name := range []string{".debug_rnglists", ".debug_addr", ".debug_str_offsets"} {
		if b := x.extra[name]; len(b) > 0 {
			if err := d.AddSection(name, b); err != nil {
				return err
			}
		}
	}
	if len(x.s.LineStr) > 0 {
		if err := d.AddSection(".debug_line_str", x.s.LineStr); err != nil {
			return err
		}
	}
	read := map[dwarf.Offset]*inliner{}
	for _, addr := range addrs {
		r := d.Reader()
		cu, err := r.SeekPC(addr)
		if err != nil || cu == nil {
			continue
		}
		in := read[cu.Offset]
		if in == nil {
			in = &inliner{d: d, names: map[dwarf.Offset]string{}, scopes: map[dwarf.Offset]string{}, room: maxScopes}
			in.functions = in.children(r, "", 0, &x.entries)
			if lr, err := d.LineReader(cu); err == nil && lr != nil {
				in.files = lr.Files()
			}
			in.compDir, _ = cu.Val(dwarf.AttrCompDir).(string)
			read[cu.Offset] = in
		}
		if chain := in.at(addr, places[addr]); len(chain) > 1 {
			out[addr] = chain
		}
	}
	return nil
}

// bytes reads a unit, or all units if its entries may refer to other units'.
func (x *inlines) bytes(off uint64) ([]byte, error) {
	us := units{r: x.s.Info, size: x.s.InfoSize, limit: x.limit, off: off}
	u, err := us.next()
	if err != nil {
		return nil, err
	}
	table, ok := parseAbbrevs(x.s.Abbrev, u.abbrevOff, u.addrSize, u.offsetSize, u.version)
	if ok && !table.uses(formRefAddr, formIndirect) {
		return us.buf, nil
	}
	if x.whole != nil {
		return x.whole, nil
	}
	if x.s.InfoSize > x.limit {
		return nil, fmt.Errorf("%d bytes of debug information are over the budget (--symbolize-memory)", x.s.InfoSize)
	}
	b := make([]byte, x.s.InfoSize)
	if n, err := x.s.Info.ReadAt(b, 0); n < len(b) {
		return nil, noEOF(err)
	}
	x.whole = b
	return b, nil
}

// at gives the chain at an address of the unit.
func (in *inliner) at(addr uint64, p Place) []Inlined {
	// Outermost first.
	var chain []*function
	for level := in.functions; len(chain) < maxInlineDepth; {
		next := covering(level, addr)
		if next == nil {
			break
		}
		chain = append(chain, next)
		level = next.children
	}
	if len(chain) < 2 {
		return nil
	}
	out := make([]Inlined, 0, len(chain))
	file, line := p.File, p.Line
	for i := len(chain) - 1; i >= 0; i-- {
		f := chain[i]
		x := Inlined{File: file, Line: line}
		if i > 0 {
			x.Name = in.name(f.name)
			file, line = "", f.line
			if all := in.files; f.file > 0 && f.file < int64(len(all)) && all[f.file] != nil {
				file = all[f.file].Name
				if dir := in.compDir; dir != "" && path.IsAbs(dir) {
					if rel, ok := below(dir, file); ok {
						file = rel
					}
				}
				file = CleanPath(file)
			}
		}
		out = append(out, x)
	}
	return out
}

// below takes a folder off a path that lies in it.
func below(dir, file string) (string, bool) {
	dir = path.Clean(dir) + "/"
	if len(file) > len(dir) && file[:len(dir)] == dir {
		return file[len(dir):], true
	}
	return file, false
}

func covering(fs []function, addr uint64) *function {
	for i := range fs {
		for _, r := range fs[i].ranges {
			if addr >= r[0] && addr < r[1] {
				return &fs[i]
			}
		}
	}
	return nil
}

// within gives the scope of what is in an entry that is in a scope: a namespace, class or structure.
func (in *inliner) within(e *dwarf.Entry, scope string) string {
	name, _ := e.Val(dwarf.AttrName).(string)
	if name == "" && e.Tag == dwarf.TagNamespace {
		name = "(anonymous namespace)"
	}
	n := len(scope) + len(name)
	if e.Tag == dwarf.TagLexDwarfBlock || name == "" || n > maxScope || n > in.room {
		return scope
	}
	in.room -= n
	return scope + name + "::"
}

// children reads the functions below an entry whose children come next, which are in a scope. Blocks
// and namespaces are looked through.
func (in *inliner) children(r *dwarf.Reader, scope string, depth int, entries *int) []function {
	var out []function
	for *entries <= maxInlineEntries {
		e, err := r.Next()
		if err != nil || e == nil || e.Tag == 0 {
			return out
		}
		*entries++
		deeper := e.Children && depth < maxInlineDepth*2
		switch e.Tag {
		case dwarf.TagSubprogram, dwarf.TagInlinedSubroutine:
			f := function{name: e.Offset}
			if scope != "" {
				in.scopes[e.Offset] = scope
			}
			if o, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset); ok {
				f.name = o
			}
			if rs, err := in.d.Ranges(e); err == nil {
				f.ranges = rs
			}
			f.file, _ = e.Val(dwarf.AttrCallFile).(int64)
			if l, ok := e.Val(dwarf.AttrCallLine).(int64); ok && l > 0 {
				f.line = uint32(min(l, 1<<31))
			}
			if deeper && len(f.ranges) > 0 {
				f.children = in.children(r, "", depth+1, entries)
			} else if e.Children {
				r.SkipChildren()
			}
			if len(f.ranges) > 0 {
				out = append(out, f)
			}
		case dwarf.TagLexDwarfBlock, dwarf.TagNamespace, dwarf.TagClassType, dwarf.TagStructType, dwarf.TagModule:
			if deeper {
				out = append(out, in.children(r, in.within(e, scope), depth+1, entries)...)
			} else if e.Children {
				r.SkipChildren()
			}
		default:
			if e.Children {
				r.SkipChildren()
			}
		}
	}
	return out
}

// name is a function's linkage name, else its name with its scope; by way of the entries that
// its own refers to. The last of them is in the function's scope: a definition outside of its class refers to the declaration inside.
func (in *inliner) name(off dwarf.Offset) string {
	if n, ok := in.names[off]; ok {
		return n
	}
	name, at, plain := "", off, true
	for range 8 {
		r := in.d.Reader()
		r.Seek(at)
		e, err := r.Next()
		if err != nil || e == nil {
			break
		}
		linkage, ok := e.Val(dwarf.AttrLinkageName).(string)
		if !ok { // before DWARF 4
			linkage, ok = e.Val(attrMIPSLinkage).(string)
		}
		if ok && linkage != "" {
			name, plain = linkage, false
			break
		}
		if s, ok := e.Val(dwarf.AttrName).(string); ok && name == "" {
			name = s
		}
		next, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			if next, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset); !ok {
				break
			}
		}
		at = next
	}
	if plain && name != "" {
		name = in.scopes[at] + name
	}
	in.names[off] = name
	return name
}
