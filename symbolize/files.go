package symbolize

import (
	"path"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"ccagent/eventlog"
	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/hssource"
)

// sourceFile is a file that a module's notes refer to.
type sourceFile struct {
	id     uint32 // in the log
	path   string
	pkg    string
	module string           // Haskell module
	text   *hssource.Module // nil without a text that fits the binary
	tops   []topSpan
	names  []namedPlace
}

// topSpan is a note that lies in no other: a top-level binding, or a method.
type topSpan struct{ span dwarfindex.Span }

// namedPlace is a place in the source whose binding the debug information
// names: "heavy" at (20, 1).
type namedPlace struct {
	line, col uint32
	name      string
}

// file returns a source file of the module being resolved, known to the log.
func (m *moduleRun) file(index uint32) (*sourceFile, error) {
	if f, ok := m.files[index]; ok {
		return f, nil
	}
	f := &sourceFile{path: m.x.File(index)}
	var dirs []string
	for _, u := range m.unitsOf[f.path] {
		dirs = append(dirs, m.x.Unit(u).CompDir)
		if f.module == "" {
			f.pkg, f.module = m.unitModule(u)
		}
	}
	known := len(dirs)
	for _, d := range m.compDirs {
		if !slices.Contains(dirs[:known], d) {
			dirs = append(dirs, d)
		}
	}
	src, problem := m.readSource(f.path, dirs)
	if src.Text != nil {
		parsed := hssource.Parse(string(src.Text), f.path)
		if problem == "" {
			f.text = &parsed
		}
		if f.module == "" {
			f.module = parsed.Name
		}
	}
	if f.module == "" {
		f.module = moduleOfPath(f.path)
	}
	m.files[index] = f
	m.places(index, f)
	var err error
	f.id, err = m.r.emitFile(f.path, src.Text, problem)
	return f, err
}

// emitFile writes a file's events and gives its id.
func (r *run) emitFile(name string, text []byte, problem string) (uint32, error) {
	r.fileCount++
	f := eventlog.File{ID: uint32(r.fileCount), Path: clean(name), Problem: clean(problem)}
	switch {
	case !r.job.EmbedSource:
		text = nil
	case r.sourceBytes+len(text) > maxSourceTotal:
		text, f.Problem = nil, "left out: the log holds enough source text already"
	}
	f.TextSize = uint64(len(text))
	r.sourceBytes += len(text)
	r.sum.Files++
	if err := r.emit(&f); err != nil {
		return 0, err
	}
	if len(text) > 0 {
		r.sum.FilesEmbed++
	}
	for off := 0; off < len(text); off += eventlog.MaxTextPiece {
		piece := eventlog.FileText{File: f.ID, Offset: uint64(off), Text: text[off:min(len(text), off+eventlog.MaxTextPiece)]}
		if err := r.emit(&piece); err != nil {
			return 0, err
		}
	}
	return f.ID, nil
}

// places prepares naming without the text: the outermost notes of the file and
// the places that procedures name.
func (m *moduleRun) places(index uint32, f *sourceFile) {
	var spans []dwarfindex.Span
	for _, id := range m.spansOf[index] {
		spans = append(spans, m.x.Span(id))
	}
	slices.SortFunc(spans, func(a, b dwarfindex.Span) int {
		if c := compare(a.Line, a.Col, b.Line, b.Col); c != 0 {
			return c
		}
		return -compare(a.EndLine, a.EndCol, b.EndLine, b.EndCol)
	})
	for _, s := range spans {
		if n := len(f.tops); n > 0 && compare(s.Line, s.Col, f.tops[n-1].span.EndLine, f.tops[n-1].span.EndCol) < 0 {
			continue
		}
		f.tops = append(f.tops, topSpan{s})
	}
	for _, id := range m.procsOf[index] {
		p := m.x.Proc(id)
		f.names = append(f.names, namedPlace{p.Pos.Line, p.Pos.Col, topOf(p.Name)})
	}
	slices.SortFunc(f.names, func(a, b namedPlace) int { return compare(a.line, a.col, b.line, b.col) })
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

// topOf is the first component of a path of declarations: "heavy" of
// "heavy.go.step", "." of ".", ".+." of ".+.".
func topOf(p string) string {
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

// bindingName names the source binding at a place, as a path below its module.
// With the text at hand the layout tells. Without, the outermost note there and
// the names that procedures of the same note have.
func (f *sourceFile) bindingName(line, col uint32) string {
	if f.text != nil {
		name, _ := f.text.At(int(line))
		return name
	}
	i := sort.Search(len(f.tops), func(i int) bool {
		return compare(f.tops[i].span.Line, f.tops[i].span.Col, line, col) > 0
	})
	if i > 0 {
		t := f.tops[i-1].span
		j := sort.Search(len(f.names), func(j int) bool { return compare(f.names[j].line, f.names[j].col, t.Line, t.Col) >= 0 })
		if j < len(f.names) && (compare(f.names[j].line, f.names[j].col, t.EndLine, t.EndCol) < 0 ||
			compare(f.names[j].line, f.names[j].col, t.Line, t.Col) == 0) {
			return f.names[j].name
		}
		if t.Col == 1 && compare(line, col, t.EndLine, t.EndCol) < 0 {
			return "" // a top-level binding that no procedure names
		}
	}
	for j := sort.Search(len(f.names), func(j int) bool { return compare(f.names[j].line, f.names[j].col, line, col) > 0 }) - 1; j >= 0; j-- {
		if f.names[j].col == 1 {
			return f.names[j].name
		}
	}
	return ""
}

// moduleOfPath guesses a module's name from its file's: the capitalised tail.
func moduleOfPath(p string) string {
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
