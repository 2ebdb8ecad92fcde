package naming

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/symbolize/evidence"
	"ccagent/symbolize/hsname"
	"ccagent/symbolize/sources"
)

// Namer names the procedures of one module in one kind of evidence.
type Namer struct {
	bindings *Bindings
	module   uint32 // in the log
	evidence evidence.Evidence
	files    *sources.Files // nil for evidence that names no files
	symbols  evidence.Symbols
	closures func(info uint64) string
	known    map[evidence.ProcID]uint32
	adopted  map[evidence.ProcID]bool
	lined    map[[2]string]string // symbols of procedures named by lines, by module and name
}

// NewNamer makes a Namer of a module. files may be nil, for evidence that names none;
// closures says what closures the info table before an address is of, and may be nil.
func NewNamer(b *Bindings, module uint32, e evidence.Evidence, files *sources.Files, symbols evidence.Symbols, closures func(info uint64) string) *Namer {
	return &Namer{b, module, e, files, symbols, closures, map[evidence.ProcID]uint32{}, map[evidence.ProcID]bool{}, map[[2]string]string{}}
}

// SpecialisedFrom gives the imported function that a procedure, which was named, was
// specialised from as far as references to it show; 0 if there is none.
func (n *Namer) SpecialisedFrom(id evidence.ProcID) uint32 {
	if !n.adopted[id] {
		return 0
	}
	return n.bindings.specialised(n.known[id])
}

// Procedures gives the bindings of the procedures that were named.
func (n *Namer) Procedures() map[evidence.ProcID]uint32 { return n.known }

// Procedure gives the binding of a procedure.
func (n *Namer) Procedure(id evidence.ProcID) (uint32, error) {
	if b, ok := n.known[id]; ok {
		return b, nil
	}
	p := n.evidence.Procedure(id)
	b, err := n.name(&p)
	if err == nil {
		n.known[id] = b
		if p.Adopted {
			n.adopted[id] = true
		}
	}
	return b, err
}

func (n *Namer) name(p *evidence.Procedure) (uint32, error) {
	switch p.Kind {
	case evidence.Foreign:
		return n.bindings.Foreign(n.module, p.Symbol, p.Category)
	case evidence.Stretch:
		return n.bindings.add(key{pkg: p.Owner.Package, mod: p.Owner.Module, name: p.Path}, eventlog.Binding{
			Package: p.Owner.Package, Module: p.Owner.Module, Name: p.Path,
			Detail: "code of this module that no symbol covers", Category: eventlog.CategoryHaskell,
		})
	case evidence.Exported:
		return n.exported(p)
	case evidence.Noted:
		return n.noted(p)
	default:
		return n.tabled(p)
	}
}

// Source gives the source binding at a position, 0 if it is unknown.
func (n *Namer) Source(p evidence.Position) (uint32, error) {
	var f *sources.File
	if p.File != 0 {
		var err error
		if f, err = n.files.File(p.File); err != nil {
			return 0, err
		}
	}
	name := ""
	if f != nil && p.Line != 0 {
		name = f.Binding(p.Line, p.Col)
	}
	if name == "" {
		name = sources.Top(p.Label)
	}
	switch {
	case name == "":
		return 0, nil
	case p.Owner != nil:
		return n.source(p.Owner.Package, p.Owner.Module, name)
	}
	return n.source(f.Package, f.Module, name)
}

// source gives a source binding, with its symbol if it has one.
func (n *Namer) source(pkg, module, name string) (uint32, error) {
	symbol := hsname.Linkage(pkg, module, name) + "_info"
	if !n.symbols.Defines(symbol) {
		symbol = ""
	}
	return n.bindings.source(pkg, module, name, symbol)
}

// ghcLabel matches the labels that GHC writes for a procedure's name where no
// note has one.
var ghcLabel = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z][0-9][0-9A-Za-z]{1,8}$|^[cu][0-9A-Za-z]{2,8}$|^L[0-9]{6,20}$`)
})

// noted names a procedure whose linkage name means nothing: by the path of
// declarations that its note has, or by where it is.
func (n *Namer) noted(p *evidence.Procedure) (uint32, error) {
	parent, err := n.Source(p.Position)
	if err != nil {
		return 0, err
	}
	b := eventlog.Binding{
		Symbol: p.Symbol, Package: p.Owner.Package, Module: p.Owner.Module, Parent: parent,
		Category: eventlog.CategoryHaskell, Detail: "local to",
	}
	path, line := p.Path, p.Position.Line
	if line == 0 && ghcLabel().MatchString(path) {
		path = ""
	}
	if parent == 0 && path == "" {
		if parent, err = n.enclosing(p.Context); err != nil {
			return 0, err
		}
		b.Parent = parent
	}
	if parent == 0 && path == "" && p.Near.File == p.File {
		if parent, err = n.Source(p.Near); err != nil {
			return 0, err
		}
		b.Parent = parent
	}
	outer := n.bindings.named[parent].name
	switch {
	case path != "":
		// The path begins with the top-level binding, an instance's with its
		// method.
		rest := strings.TrimPrefix(path, sources.Top(path))
		b.Name = path
		if outer != "" {
			b.Name = below(outer, rest)
		}
		if rest == "" && line != 0 {
			b.Name = below(b.Name, fmt.Sprintf(`.\(%d:%d)`, line, p.Position.Col))
			b.Detail = "subexpression of"
		}
	case outer != "":
		b.Name = below(outer, "."+evidence.Unnamed)
		b.Detail = "subexpression of"
		if p.Adopted {
			b.Detail = "used only by"
		}
	default:
		if b.Name, err = n.byLine(p); err != nil {
			return 0, err
		}
		b.Detail = "made by GHC; no source note says of what"
	}
	if n.closures != nil {
		if d := n.closures(p.Info); d != "" {
			b.Detail = d + ", " + b.Detail
		}
	}
	return n.bindings.add(key{module: n.module, mod: b.Module, name: p.Symbol + "\x00" + b.Name}, b)
}

// byLine names a procedure whose binding is not known, by its first line, or else by
// its symbol; a second one of the same line by both.
func (n *Namer) byLine(p *evidence.Procedure) (string, error) {
	at := p.Position
	if at.Line == 0 {
		at = p.Near
	}
	symbol := strings.TrimSuffix(p.Symbol, ghc.InfoSuffix)
	if at.Line == 0 || at.File == 0 {
		if symbol == "" {
			return evidence.Unnamed, nil
		}
		return "(local code " + symbol + ")", nil
	}
	file := n.files.Path(at.File)
	name := fmt.Sprintf("(local code at %s:%d)", file[strings.LastIndexByte(file, '/')+1:], at.Line)
	k := [2]string{p.Owner.Module, name}
	if first, ok := n.lined[k]; ok && first != symbol {
		return strings.TrimSuffix(name, ")") + ", " + symbol + ")", nil
	}
	n.lined[k] = symbol
	return name, nil
}

// tableName matches an internal table's label: what it is of, and a unique.
var tableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(.+)_[a-zA-Z][0-9a-zA-Z]{1,12}_info$`) })

// tabled names a procedure by its entry in the info table map.
func (n *Namer) tabled(p *evidence.Procedure) (uint32, error) {
	at, err := n.Source(p.Position)
	if err != nil {
		return 0, err
	}
	b := eventlog.Binding{
		Symbol: p.Symbol, Package: p.Owner.Package, Module: p.Owner.Module, Name: p.Path, Parent: at,
		Category: eventlog.CategoryHaskell, Detail: "local to",
	}
	local := ""
	if t := tableName().FindStringSubmatch(p.Symbol); t != nil {
		o := hsname.Explain(t[1])
		local = cmp.Or(o.Path, o.Source)
	}
	last := p.Path[strings.LastIndexByte(p.Path, '.')+1:]
	switch {
	case p.Path == "":
		b.Name, b.Detail = cmp.Or(local, evidence.Unnamed), "made by GHC"
	case local == "":
		b.Name, b.Detail = below(p.Path, "."+evidence.Unnamed), "subexpression of"
	case local != last:
		b.Name = below(p.Path, "."+local)
	}
	if p.Closures != "" {
		b.Detail = p.Closures + ", " + b.Detail
	}
	return n.bindings.add(key{module: n.module, mod: b.Module, name: p.Symbol + "\x00" + b.Name}, b)
}

// maxContexts bounds the procedures that enclosing goes through: in a crafted file their
// contexts may form a cycle.
const maxContexts = 64

// enclosing gives the source binding of a procedure or else of those that it came from,
// 0 if none has any.
func (n *Namer) enclosing(id evidence.ProcID) (uint32, error) {
	for hops := 0; id != 0 && hops < maxContexts; hops++ {
		p := n.evidence.Procedure(id)
		if p.Kind == evidence.Exported {
			b, err := n.exported(&p)
			return n.bindings.roots[b], err
		}
		if b, err := n.Source(p.Position); b != 0 || err != nil {
			return b, err
		}
		id = p.Context
	}
	return 0, nil
}

// below names what is local to a binding: "show.go (instance Show Shape)".
func below(outer, path string) string {
	if name, where, ok := strings.Cut(outer, " ("); ok {
		return name + path + " (" + where
	}
	if strings.HasPrefix(outer, "(") && strings.Contains(outer, " ") {
		return strings.TrimPrefix(path, ".") + " " + outer
	}
	return outer + path
}
