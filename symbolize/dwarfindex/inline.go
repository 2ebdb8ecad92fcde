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
	Name string // linkage name where there is one; empty for the function that has the code
	File string // where it is at the address: the call's place, of all but the innermost
	Line uint32
}

// Limits of a search for inlined functions.
const (
	maxInlineDepth   = 64
	maxInlineEntries = 1 << 22 // entries looked at, in all
)

// inliner reads the functions of other compilers' units by debug/dwarf, which
// knows their dialects.
type inliner struct {
	d       *dwarf.Data
	entries int
	units   map[dwarf.Offset][]function
	files   map[dwarf.Offset][]*dwarf.LineFile
	names   map[dwarf.Offset]string
	compDir map[dwarf.Offset]string
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
// are left out. info is all of .debug_info; extra holds .debug_ranges and the
// sections of DWARF 5 by name.
func Inlines(ctx context.Context, s Sections, info []byte, extra map[string][]byte, places map[uint64]Place) (out map[uint64][]Inlined, err error) {
	out = map[uint64][]Inlined{}
	// The parser is for well-formed files; these may be crafted.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("read inlined functions: %v", r)
		}
	}()
	d, err := dwarf.New(s.Abbrev, nil, nil, info, s.Line, nil, extra[".debug_ranges"], s.Str)
	if err != nil {
		return out, fmt.Errorf("read inlined functions: %w", err)
	}
	for _, name := range []string{".debug_rnglists", ".debug_addr", ".debug_str_offsets"} {
		if b := extra[name]; len(b) > 0 {
			if err := d.AddSection(name, b); err != nil {
				return out, fmt.Errorf("read inlined functions: %w", err)
			}
		}
	}
	if len(s.LineStr) > 0 {
		if err := d.AddSection(".debug_line_str", s.LineStr); err != nil {
			return out, fmt.Errorf("read inlined functions: %w", err)
		}
	}
	in := &inliner{d: d, units: map[dwarf.Offset][]function{}, files: map[dwarf.Offset][]*dwarf.LineFile{}, names: map[dwarf.Offset]string{}, compDir: map[dwarf.Offset]string{}}
	for addr, p := range places {
		if ctx.Err() != nil || in.entries > maxInlineEntries {
			break
		}
		if chain := in.at(addr, p); len(chain) > 1 {
			out[addr] = chain
		}
	}
	return out, nil
}

func (in *inliner) at(addr uint64, p Place) []Inlined {
	r := in.d.Reader()
	cu, err := r.SeekPC(addr)
	if err != nil || cu == nil {
		return nil
	}
	fs, ok := in.units[cu.Offset]
	if !ok {
		fs = in.children(r, 0)
		in.units[cu.Offset] = fs
		if lr, err := in.d.LineReader(cu); err == nil && lr != nil {
			in.files[cu.Offset] = lr.Files()
		}
		in.compDir[cu.Offset], _ = cu.Val(dwarf.AttrCompDir).(string)
	}
	// Outermost first.
	var chain []*function
	for level := fs; len(chain) < maxInlineDepth; {
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
			if all := in.files[cu.Offset]; f.file > 0 && f.file < int64(len(all)) && all[f.file] != nil {
				file = all[f.file].Name
				if dir := in.compDir[cu.Offset]; dir != "" && path.IsAbs(dir) {
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

// children reads the functions below an entry whose children come next. Blocks
// and namespaces are looked through.
func (in *inliner) children(r *dwarf.Reader, depth int) []function {
	var out []function
	for in.entries <= maxInlineEntries {
		e, err := r.Next()
		if err != nil || e == nil || e.Tag == 0 {
			return out
		}
		in.entries++
		deeper := e.Children && depth < maxInlineDepth*2
		switch e.Tag {
		case dwarf.TagSubprogram, dwarf.TagInlinedSubroutine:
			f := function{name: e.Offset}
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
				f.children = in.children(r, depth+1)
			} else if e.Children {
				r.SkipChildren()
			}
			if len(f.ranges) > 0 {
				out = append(out, f)
			}
		case dwarf.TagLexDwarfBlock, dwarf.TagNamespace, dwarf.TagClassType, dwarf.TagStructType, dwarf.TagModule:
			if deeper {
				out = append(out, in.children(r, depth+1)...)
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

// name is a function's linkage name, else its name; by way of the entries that
// its own refers to.
func (in *inliner) name(off dwarf.Offset) string {
	if n, ok := in.names[off]; ok {
		return n
	}
	name, at := "", off
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
			name = linkage
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
	in.names[off] = name
	return name
}
