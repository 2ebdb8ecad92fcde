package centres

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/curry"
)

// Centre is a chosen cost centre, or a pseudo-centre for the cost that no chosen one has.
type Centre struct {
	Name    string
	Module  string // empty if the centre spans several modules
	Package string
	Span    string         // "file:line:col-line:col"; for spans and for bindings with known source
	File    string         // of Span
	Extent  columns.Extent // of Span
	Pseudo  bool
}

// Found is a set of cost centres found in a profile. It is immutable.
type Found struct {
	// List has the chosen centres.
	List []Centre
	// Missed has the patterns of the set that match nothing, with the nearest names.
	Missed []*MissedError

	p *profile.Profile
	// These are indexed by source binding: its centre, that of its module and that of
	// its package; 0 for none or 1 + an index of List.
	binding, module, pkg []int32
	spans                map[columns.FileID][]spanCentre // narrowest first
	modes                [scopes]struct {
		once   sync.Once
		chains *chains
	}
	evaluated *evaluated // shared with the result of Without
}

// evaluated caches the CAFs of a profile, which are found when first needed.
type evaluated struct {
	once sync.Once
	cafs *cafs
}

type spanCentre struct {
	x      columns.Extent
	centre int32 // index of List
}

// MissedError is the error for a pattern that matches nothing in a profile.
type MissedError struct {
	Pattern Pattern
	Nearest []string
}

func (e *MissedError) Error() string {
	s := fmt.Sprintf("cost centre %q names no code that the log has samples of", e.Pattern.String())
	if len(e.Nearest) > 0 {
		s += ": the nearest are " + strings.Join(e.Nearest, ", ")
	}
	return s
}

// Find finds a set's centres. An element that matches several patterns belongs to the
// first. Patterns without a match are in Missed.
func Find(p *profile.Profile, set Set) *Found {
	n := len(p.Symbols.Bindings)
	c := &Found{p: p, evaluated: &evaluated{}, binding: make([]int32, n), module: make([]int32, n), pkg: make([]int32, n), spans: make(map[columns.FileID][]spanCentre)}
	m := &matcher{p: p, c: c, named: make(map[string]int32), elements: make(map[key]int32)}
	for _, pat := range set.Patterns {
		if !m.add(pat) {
			c.Missed = append(c.Missed, &MissedError{pat, nearestNames(p, pat.Glob)})
		}
	}
	for f := range c.spans {
		slices.SortStableFunc(c.spans[f], func(a, b spanCentre) int {
			switch {
			case a.x == b.x:
				return 0
			case b.x.Contains(a.x):
				return -1
			case a.x.Contains(b.x):
				return 1
			}
			return cmp.Compare(a.x.Line, b.x.Line)
		})
	}
	return c
}

// key identifies the element that a centre was made for.
type key struct {
	in, name string
	x        columns.Extent
}

type matcher struct {
	p        *profile.Profile
	c        *Found
	named    map[string]int32 // by pattern name
	elements map[key]int32    // by element
}

// add adds the centres that match a pattern, and reports whether there are any.
func (m *matcher) add(pat Pattern) bool {
	switch pat.Preset {
	case PresetBindings:
		// Exclude modules with a colon, which GHC generates around main, and
		// names with a space, which describe generated code: "insertWith
		// (specialised)" in Main belongs to a library function. What search
		// costs a Curry program is its functions'.
		own := ownPackages(m.p)
		return m.bindings(pat, func(id columns.BindingID, b *columns.Binding) bool {
			name := strings.TrimSuffix(b.Name, curry.NonDeterministicMark)
			return name != "" && own[b.Package] && !strings.HasPrefix(b.Module, ":") && !strings.Contains(name, " ") && !m.p.Searches(id)
		})
	case PresetModules:
		return m.modules(pat, func(*columns.Binding) bool { return true })
	case PresetPackages:
		return m.packages(pat, func(*columns.Binding) bool { return true })
	}
	for _, l := range levelPrefixes {
		if pat.HasLevel && pat.Level != l.level {
			continue
		}
		found := false
		switch l.level {
		case profile.LevelBinding:
			found = m.bindings(pat, func(_ columns.BindingID, b *columns.Binding) bool { return glob(pat.Glob, b.QualifiedName()) })
		case profile.LevelModule:
			found = m.modules(pat, func(b *columns.Binding) bool { return glob(pat.Glob, b.Module) })
		case profile.LevelPackage:
			found = m.packages(pat, func(b *columns.Binding) bool { return glob(pat.Glob, b.Package) })
		case profile.LevelFile:
			found = m.inFiles(pat)
		case profile.LevelSpan:
			found = m.inSpans(pat)
		}
		if found {
			return true
		}
	}
	return false
}

// put returns the centre of an element: an existing one if an earlier pattern matched it.
func (m *matcher) put(pat Pattern, k key, c Centre) int32 {
	if id, ok := m.elements[k]; ok {
		return id
	}
	id, ok := int32(0), false
	if pat.Name != "" {
		if id, ok = m.named[pat.Name]; ok {
			one := &m.c.List[id]
			if one.Module != c.Module {
				one.Module = ""
			}
			if one.Package != c.Package {
				one.Package = ""
			}
			one.Span, one.File, one.Extent = "", "", columns.Extent{}
		}
		c.Name = pat.Name
	}
	if !ok {
		id = int32(len(m.c.List))
		m.c.List = append(m.c.List, c)
		if pat.Name != "" {
			m.named[pat.Name] = id
		}
	}
	m.elements[k] = id
	return id
}

func (m *matcher) eachSource(f func(id columns.BindingID, b *columns.Binding)) {
	for i := 1; i < len(m.p.Symbols.Bindings); i++ {
		if b := &m.p.Symbols.Bindings[i]; b.Source == columns.BindingID(i) {
			f(b.Source, b)
		}
	}
}

func (m *matcher) bindings(pat Pattern, want func(columns.BindingID, *columns.Binding) bool) bool {
	found := false
	home := m.p.Symbols.BindingSpans()
	m.eachSource(func(id columns.BindingID, b *columns.Binding) {
		if !want(id, b) {
			return
		}
		found = true
		name := b.QualifiedName()
		c := Centre{Name: name, Module: b.Module, Package: b.Package}
		if sp := m.p.Symbols.Spans[home[id]]; sp.File != 0 {
			c.File, c.Extent = m.p.Symbols.Files[sp.File].Path, sp.Extent
			c.Span = c.File + ":" + c.Extent.String()
		}
		m.c.binding[id] = 1 + m.put(pat, key{b.Package, "b" + name, columns.Extent{}}, c)
	})
	return found
}

func (m *matcher) modules(pat Pattern, want func(*columns.Binding) bool) bool {
	found := false
	m.eachSource(func(id columns.BindingID, b *columns.Binding) {
		if b.Module == "" || !want(b) {
			return
		}
		found = true
		m.c.module[id] = 1 + m.put(pat, key{b.Package, "m" + b.Module, columns.Extent{}}, Centre{Name: b.Module, Module: b.Module, Package: b.Package})
	})
	return found
}

func (m *matcher) packages(pat Pattern, want func(*columns.Binding) bool) bool {
	found := false
	m.eachSource(func(id columns.BindingID, b *columns.Binding) {
		if b.Package == "" || !want(b) {
			return
		}
		found = true
		m.c.pkg[id] = 1 + m.put(pat, key{b.Package, "p", columns.Extent{}}, Centre{Name: b.Package, Package: b.Package})
	})
	return found
}

// fileMatches reports whether a pattern matches a path or its last components.
func fileMatches(pattern, file string) bool {
	return glob(pattern, file) || glob("*/"+strings.TrimPrefix(pattern, "./"), file)
}

// whole is the extent of a whole file.
var whole = columns.Extent{Line: 1, Col: 1, EndLine: ^uint32(0), EndCol: ^uint32(0)}

// inFiles makes a centre of each matching file.
func (m *matcher) inFiles(pat Pattern) bool {
	found := false
	for i := 1; i < len(m.p.Symbols.Files); i++ {
		file := m.p.Symbols.Files[i].Path
		if !fileMatches(pat.Glob, file) {
			continue
		}
		found = true
		m.span(pat, columns.FileID(i), whole, Centre{Name: file})
	}
	return found
}

func (m *matcher) span(pat Pattern, f columns.FileID, x columns.Extent, c Centre) {
	of := &m.p.Symbols.Bindings[m.p.ModuleOfFile()[f]]
	c.Module, c.Package = of.Module, of.Package
	file := m.p.Symbols.Files[f].Path
	if c.Span != "" {
		c.File, c.Extent = file, x
	}
	id := m.put(pat, key{file, "s", x}, c)
	m.c.spans[f] = append(m.c.spans[f], spanCentre{x, id})
}

// inSpans makes a centre of a region of source that contains a span, or of each span that
// a glob matches.
func (m *matcher) inSpans(pat Pattern) bool {
	s := &m.p.Symbols
	if file, x, ok := parseStretch(pat.Glob); ok {
		holds := make(map[columns.FileID]bool)
		for i := 1; i < len(s.Spans); i++ {
			if sp := &s.Spans[i]; sp.File != 0 && !holds[sp.File] && x.Contains(sp.Extent) && fileMatches(file, s.Files[sp.File].Path) {
				holds[sp.File] = true
			}
		}
		for f := range s.Files {
			if holds[columns.FileID(f)] {
				name := s.Files[f].Path + pat.Glob[len(file):]
				m.span(pat, columns.FileID(f), x, Centre{Name: name, Span: name})
			}
		}
		return len(holds) > 0
	}
	if !wild(pat.Glob) {
		return false
	}
	found := false
	for i := 1; i < len(s.Spans); i++ {
		sp := &s.Spans[i]
		if sp.File == 0 {
			continue
		}
		if name := s.Files[sp.File].Path + ":" + sp.Extent.String(); fileMatches(pat.Glob, name) {
			found = true
			m.span(pat, sp.File, sp.Extent, Centre{Name: name, Span: name})
		}
	}
	return found
}

// parseStretch parses FILE:LINE, FILE:LINE-LINE and FILE:LINE:COL-LINE:COL.
func parseStretch(s string) (file string, x columns.Extent, ok bool) {
	try := func(format string, rest string, to ...any) bool {
		n, err := fmt.Sscanf(rest+"\n", format+"\n", to...)
		return err == nil && n == len(to)
	}
	for i := strings.IndexByte(s, ':'); i >= 0; {
		file, rest := s[:i], s[i+1:]
		x = columns.Extent{}
		switch {
		case try("%d:%d-%d:%d", rest, &x.Line, &x.Col, &x.EndLine, &x.EndCol):
			return file, x, x.Line > 0
		case try("%d-%d", rest, &x.Line, &x.EndLine):
			x.Col, x.EndCol = 1, ^uint32(0)
			return file, x, x.Line > 0
		case try("%d", rest, &x.Line):
			x.Col, x.EndLine, x.EndCol = 1, x.Line, ^uint32(0)
			return file, x, x.Line > 0
		}
		j := strings.IndexByte(rest, ':')
		if j < 0 {
			break
		}
		i += 1 + j
	}
	return "", columns.Extent{}, false
}

// ownPackages returns the program's own packages: "main", or if there is no such code,
// all packages that have source notes.
func ownPackages(p *profile.Profile) map[string]bool {
	own := make(map[string]bool)
	for i := range p.Symbols.Bindings {
		if p.Symbols.Bindings[i].Package == "main" {
			own["main"] = true
			return own
		}
	}
	for i := range p.Symbols.Spans {
		if b := &p.Symbols.Bindings[p.Symbols.Spans[i].Binding]; b.Package != "" {
			own[b.Package] = true
		}
	}
	return own
}

// nearestNames returns the names of elements most similar to a glob.
func nearestNames(p *profile.Profile, pattern string) []string {
	query := strings.ToLower(strings.NewReplacer("*", "", "?", "", "\\", "").Replace(pattern))
	if query == "" {
		return nil
	}
	type scored struct {
		name string
		d    int
	}
	var all []scored
	seen := make(map[string]bool)
	add := func(name string) {
		if name == "" || seen[name] || len(name) > 200 {
			return
		}
		seen[name] = true
		low := strings.ToLower(name)
		d := distance(query, low)
		if i := strings.LastIndexAny(low, "./"); i >= 0 && !strings.ContainsAny(query, "./") {
			d = min(d, distance(query, low[i+1:]))
		}
		if strings.Contains(low, query) {
			d = min(d, 1)
		}
		all = append(all, scored{name, d})
	}
	for i := 1; i < len(p.Symbols.Bindings); i++ {
		if b := &p.Symbols.Bindings[i]; b.Source == columns.BindingID(i) && b.Module != "" {
			add(b.QualifiedName())
			add(b.Module)
			add(b.Package)
		}
	}
	for i := 1; i < len(p.Symbols.Files); i++ {
		add(p.Symbols.Files[i].Path)
		add(path.Base(p.Symbols.Files[i].Path))
	}
	slices.SortFunc(all, func(a, b scored) int { return cmp.Or(cmp.Compare(a.d, b.d), cmp.Compare(a.name, b.name)) })
	var out []string
	for _, s := range all[:min(3, len(all))] {
		out = append(out, s.name)
	}
	return out
}

// distance returns the edit distance of two texts: the number of characters to change,
// insert or delete.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}
