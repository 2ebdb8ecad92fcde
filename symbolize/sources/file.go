package sources

import (
	"path"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"ccagent/symbolize/hsname"
	"ccagent/symbolize/hssource"
)

// FileID is the number that one kind of evidence of a module has for a file; 0 is none.
type FileID uint32

// Description is what evidence holds about a source file.
type Description struct {
	Path    string   // as compiled
	Dirs    []string // where the compiler may have run, the likeliest first
	Package string
	Module  string // Haskell module; empty if unknown
	// Checked is set where a text that names another module than Module is not the file's.
	Checked bool
	Outline Outline
}

// Outline is what debug information holds about the bindings of a file, for when its
// text is not at hand.
type Outline struct {
	Tops  []Extent // notes that lie in no other: top-level bindings and methods, by position
	Names []Name   // by position
}

// Name is a position whose top-level binding is known: "heavy" at (20, 1).
type Name struct {
	Line, Col uint32
	Name      string
	// Instance is set for a method of an instance: class and type run together, as in names of GHC.
	Instance string
}

// NewOutline makes an outline of all notes of a file and of the positions of its
// procedures, whose names are paths of declarations.
func NewOutline(notes []Extent, procedures []Name) Outline {
	slices.SortFunc(notes, func(a, b Extent) int {
		if c := compare(a.Line, a.Col, b.Line, b.Col); c != 0 {
			return c
		}
		return -compare(a.EndLine, a.EndCol, b.EndLine, b.EndCol)
	})
	o := Outline{Names: procedures}
	for _, n := range notes {
		if last := len(o.Tops) - 1; last >= 0 && compare(n.Line, n.Col, o.Tops[last].EndLine, o.Tops[last].EndCol) < 0 {
			continue
		}
		o.Tops = append(o.Tops, n)
	}
	for i := range o.Names {
		o.Names[i].Name = Top(o.Names[i].Name)
	}
	slices.SortStableFunc(o.Names, func(a, b Name) int { return compare(a.Line, a.Col, b.Line, b.Col) })
	o.shareInstances()
	return o
}

// shareInstances tells all names below an outermost note of the instance that one of them is known to be in:
// what is local to a method has no name that says so.
func (o *Outline) shareInstances() {
	for i, next := 0, 0; i < len(o.Tops); i++ {
		t := o.Tops[i]
		for next < len(o.Names) && compare(o.Names[next].Line, o.Names[next].Col, t.Line, t.Col) < 0 {
			next++
		}
		below := next
		for next < len(o.Names) && t.holds(o.Names[next].Line, o.Names[next].Col) {
			next++
		}
		names := o.Names[below:next]
		known := slices.IndexFunc(names, func(n Name) bool { return n.Instance != "" })
		if known < 0 {
			continue
		}
		for j := range names {
			if names[j].Name == names[known].Name {
				names[j].Instance = names[known].Instance
			}
		}
	}
}

// holds reports whether a position that is not before an extent is in it.
func (e Extent) holds(line, col uint32) bool {
	return compare(line, col, e.EndLine, e.EndCol) < 0 || compare(line, col, e.Line, e.Col) == 0
}

// binding names the top-level binding at a position: by the outermost note there and
// the names that procedures of the same note have.
func (o *Outline) binding(line, col uint32) Name {
	i := sort.Search(len(o.Tops), func(i int) bool {
		return compare(o.Tops[i].Line, o.Tops[i].Col, line, col) > 0
	})
	if i > 0 {
		t := o.Tops[i-1]
		j := sort.Search(len(o.Names), func(j int) bool { return compare(o.Names[j].Line, o.Names[j].Col, t.Line, t.Col) >= 0 })
		if j < len(o.Names) && t.holds(o.Names[j].Line, o.Names[j].Col) {
			return o.Names[j]
		}
		if t.Col == 1 && compare(line, col, t.EndLine, t.EndCol) < 0 {
			return Name{} // a top-level binding that no procedure names
		}
	}
	for j := sort.Search(len(o.Names), func(j int) bool { return compare(o.Names[j].Line, o.Names[j].Col, line, col) > 0 }) - 1; j >= 0; j-- {
		if o.Names[j].Col == 1 {
			return o.Names[j]
		}
	}
	return Name{}
}

func compare(l1, c1, l2, c2 uint32) int {
	switch {
	case l1 < l2 || l1 == l2 && c1 < c2:
		return -1
	case l1 == l2 && c1 == c2:
		return 0
	}
	return 1
}

// File is a source file that the log knows.
type File struct {
	ID      uint32 // in the log
	Package string
	Module  string
	text    *hssource.Module // nil without a text that fits the binary
	outline Outline
	isClass func(string) bool
}

// Files are the files that one kind of evidence of a module names.
type Files struct {
	finder   *Finder
	log      *Log
	describe func(FileID) Description
	isClass  func(string) bool
	known    map[FileID]*File
}

// NewFiles makes the Files that describe gives the descriptions of. isClass recognises the module's own
// classes in the names of instances; it may be nil.
func NewFiles(finder *Finder, log *Log, describe func(FileID) Description, isClass func(string) bool) *Files {
	return &Files{finder, log, describe, isClass, map[FileID]*File{}}
}

// File gives a file, which it finds and writes into the log when it is first asked for.
func (s *Files) File(id FileID) (*File, error) {
	if f, ok := s.known[id]; ok {
		return f, nil
	}
	d := s.describe(id)
	f := &File{Package: d.Package, Module: d.Module, outline: d.Outline, isClass: s.isClass}
	content, problem := s.finder.Find(d.Path, d.Dirs, nil)
	if content.Text != nil && !strings.HasSuffix(d.Path, currySuffix) {
		parsed := hssource.Parse(string(content.Text), d.Path)
		if problem == "" && (!d.Checked || parsed.Name == "" || parsed.Name == d.Module) {
			f.text = &parsed
		}
		if f.Module == "" {
			f.Module = parsed.Name
		}
	}
	if f.Module == "" {
		f.Module = ModuleOfPath(d.Path)
	}
	s.known[id] = f
	var err error
	f.ID, err = s.log.Write(d.Path, content.Text, problem)
	return f, err
}

// Path gives a file's path as compiled.
func (s *Files) Path(id FileID) string { return s.describe(id).Path }

// Binding names the source binding at a position, as a path below its module; empty if
// that is unknown. It goes by the layout of the text, or the outline where there is none.
func (f *File) Binding(line, col uint32) string {
	if f.text == nil {
		n := f.outline.binding(line, col)
		return hsname.Member(n.Name, n.Instance, f.isClass)
	}
	name, _ := f.text.At(int(line))
	return name
}

// Declaration gives the lines of the declaration at a line, whose first line is not
// after it.
func (f *File) Declaration(line uint32) (first, last uint32, ok bool) {
	if f.text == nil {
		return 0, 0, false
	}
	a, b, ok := f.text.Extent(int(line))
	return uint32(a), uint32(b), ok && uint32(a) <= line
}

// Text gives the declarations in the file's text; nil without a text that fits the
// binary.
func (f *File) Text() *hssource.Module {
	if f == nil {
		return nil
	}
	return f.text
}

// Top is the first component of a path of declarations: "heavy" of
// "heavy.go.step", "." of ".", ".+" of ".+.".
func Top(p string) string {
	r, _ := utf8.DecodeRuneInString(p)
	if !unicode.IsLetter(r) && r != '_' { // an operator may hold dots
		end := strings.IndexFunc(p, func(r rune) bool { return unicode.IsLetter(r) || r == '_' })
		if end > 0 && p[end-1] == '.' && end > 1 {
			return p[:end-1]
		}
		return p
	}
	top, _, _ := strings.Cut(p, ".")
	return top
}

// ModuleOfPath guesses a Haskell module's name from its file's: the capitalised tail.
func ModuleOfPath(p string) string {
	p = strings.TrimSuffix(p, path.Ext(p))
	parts := strings.Split(p, "/")
	i := len(parts)
	for i > 0 {
		r, _ := utf8.DecodeRuneInString(parts[i-1])
		if !unicode.IsUpper(r) {
			break
		}
		i--
	}
	return strings.Join(parts[i:], ".")
}
