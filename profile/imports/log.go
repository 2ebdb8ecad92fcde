package imports

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"ccagent/eventlog"
)

// log writes imported data as a log: stack nodes and samples immediately, and at the end
// the symbol tables, with one entry for each function.
type log struct {
	w     *eventlog.Writer
	err   error // the first one
	spend *budget

	nodes    map[eventlog.Node]uint32
	bindings map[binding]uint32
	files    map[string]uint32
	spans    map[eventlog.Span]uint32
	places   map[string]uint64 // address in the log, by frame.key
	symbols  []eventlog.Event
	samples  uint64
}

type binding struct {
	name, symbol string
	category     eventlog.Category
}

// An import has one module for all code, because its addresses are assigned here.
const (
	kernelModule = 0
	codeModule   = 1
)

// line is one function of a frame.
type line struct {
	name, symbol, file string
	line               uint32
}

// frame describes a frame: its lines, innermost first.
type frame struct {
	key      string // identifies the frame
	category eventlog.Category
	bare     bool // only the category is known: the functions are not causes
	lines    []line
}

func newLog(w io.Writer, spend *budget) *log {
	l := &log{
		spend: spend, w: eventlog.NewWriter(w, nil), nodes: make(map[eventlog.Node]uint32), bindings: make(map[binding]uint32),
		files: make(map[string]uint32), spans: make(map[eventlog.Span]uint32), places: make(map[string]uint64),
	}
	l.write(0, &eventlog.Module{ID: codeModule, Path: "imported code"})
	return l
}

func (l *log) write(time uint64, ev eventlog.Event) {
	if err := l.w.Write(time, eventlog.NoCap, ev); err != nil && l.err == nil {
		l.err = err
	}
}

// hold and look charge the budget. If it is exceeded, that becomes the log's error.
func (l *log) hold(bytes int64) { l.charge(l.spend.hold(bytes)) }
func (l *log) look(bytes int)   { l.charge(l.spend.look(bytes)) }

func (l *log) charge(err error) {
	if err != nil && l.err == nil {
		l.err = err
	}
}

// node returns the node of a frame on top of its parent.
func (l *log) node(parent uint32, f *frame) uint32 {
	n := eventlog.Node{Parent: parent, Kind: eventlog.FrameReturn, Module: codeModule, Addr: l.place(f)}
	if f.category == eventlog.CategoryKernel {
		n.Kind, n.Module = eventlog.FrameKernel, kernelModule
	}
	id, ok := l.nodes[n]
	if !ok {
		l.hold(costNode)
		id = uint32(len(l.nodes) + 1)
		l.nodes[n] = id
		l.write(0, &eventlog.Nodes{First: id, Nodes: []eventlog.Node{n}})
	}
	return id
}

// place returns a frame's address.
func (l *log) place(f *frame) uint64 {
	if at, ok := l.places[f.key]; ok {
		return at
	}
	l.hold(costPlace + int64(len(f.key)))
	at := uint64(len(l.places)+1) << 4
	l.places[f.key] = at
	loc := eventlog.Location{Addr: at, Quality: eventlog.QualityExact, Category: f.category}
	if n := len(f.lines); n > 0 {
		loc.Binding = l.binding(&f.lines[n-1], f.category)
	} else {
		loc.Quality = eventlog.QualityNone
	}
	if !f.bare && (f.category == eventlog.CategoryHaskell || f.category == eventlog.CategoryForeign) {
		bl := &eventlog.Block{ID: uint32(len(l.places)), Module: codeModule, Lo: at, Hi: at + 16, Binding: loc.Binding}
		for i := range f.lines {
			if len(bl.Causes) == maxCauses {
				break
			}
			ln := &f.lines[i]
			bl.Causes = append(bl.Causes, eventlog.Cause{Span: l.span(ln, l.binding(ln, f.category)), Distance: uint32(i)})
		}
		l.symbols = append(l.symbols, bl)
		loc.Block = bl.ID
	}
	module := uint32(codeModule)
	if f.category == eventlog.CategoryKernel {
		module = kernelModule
	}
	l.symbols = append(l.symbols, &eventlog.Locations{Module: module, Locations: []eventlog.Location{loc}})
	return at
}

// maxCauses keeps a block within the size of an event.
const maxCauses = 4000

func (l *log) binding(ln *line, c eventlog.Category) uint32 {
	k := binding{cut(ln.name), cut(ln.symbol), c}
	l.look(len(k.name) + len(k.symbol))
	id, ok := l.bindings[k]
	if !ok {
		l.hold(costSymbol + 3*int64(len(k.name)+len(k.symbol)))
		id = uint32(len(l.bindings) + 1)
		l.bindings[k] = id
		module, name := qualified(k.name)
		l.symbols = append(l.symbols, &eventlog.Binding{ID: id, Symbol: k.symbol, Module: module, Name: name, Category: c})
	}
	return id
}

func (l *log) span(ln *line, bind uint32) uint32 {
	s := eventlog.Span{Binding: bind}
	if ln.file != "" {
		s.File = l.file(cut(ln.file))
	}
	if s.File != 0 && ln.line > 0 {
		s.Line, s.EndLine, s.Col, s.EndCol = ln.line, ln.line, 1, 2
	}
	id, ok := l.spans[s]
	if !ok {
		l.hold(costSymbol)
		id = uint32(len(l.spans) + 1)
		l.spans[s] = id
		s.ID = id
		l.symbols = append(l.symbols, &s)
	}
	return id
}

func (l *log) file(path string) uint32 {
	l.look(len(path))
	id, ok := l.files[path]
	if !ok {
		l.hold(costSymbol + 3*int64(len(path)))
		id = uint32(len(l.files) + 1)
		l.files[path] = id
		l.symbols = append(l.symbols, &eventlog.File{ID: id, Path: path})
	}
	return id
}

func (l *log) sample(time uint64, s *eventlog.Sample) {
	l.hold(costSample)
	l.write(time, s)
	l.samples++
}

func (l *log) end() error {
	l.write(0, &eventlog.ModuleSymbols{Module: codeModule, HasSymtab: true})
	for _, ev := range l.symbols {
		l.write(0, ev)
	}
	if l.err != nil {
		return l.err
	}
	return l.w.Close()
}

// maxName bounds the length of names.
const maxName = 8 << 10

// cut makes a name valid text of bounded size.
func cut(s string) string {
	if len(s) > maxName {
		s = s[:maxName]
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}

// qualified splits a Haskell name such as Data.Map.insert into module and rest. Other
// names, also with dots, are not split.
func qualified(name string) (module, rest string) {
	at := 0
	for {
		part, tail, ok := strings.Cut(name[at:], ".")
		if !ok || !conid(part) || tail == "" {
			break
		}
		at += len(part) + 1
	}
	if at == 0 {
		return "", name
	}
	return name[:at-1], name[at:]
}

// conid reports whether s is a part of a module's name.
func conid(s string) bool {
	for i, r := range s {
		if i == 0 && !unicode.IsUpper(r) || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '\'' {
			return false
		}
	}
	return s != ""
}

// categoryNamed returns the category that our exports write in place of a function name:
// "(GC)" in pprof, "[GC]" in perf script.
func categoryNamed(name string) (eventlog.Category, bool) {
	switch name {
	case "GC":
		return eventlog.CategoryGC, true
	case "STG":
		return eventlog.CategorySTG, true
	case "foreign":
		return eventlog.CategoryForeign, true
	case "kernel":
		return eventlog.CategoryKernel, true
	case "unresolved", "unknown":
		return eventlog.CategoryUnresolved, true
	}
	return 0, false
}

// categoryOf returns the category of a function whose name is not that of a category.
func categoryOf(name string) eventlog.Category {
	if module, _ := qualified(name); module != "" {
		return eventlog.CategoryHaskell
	}
	return eventlog.CategoryForeign
}
