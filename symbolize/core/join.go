package core

import (
	"ccagent/eventlog"
	"ccagent/symbolize/coredump"
	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/evidence"
	"ccagent/symbolize/evidence/dwarf"
	"ccagent/symbolize/hsname"
	"ccagent/symbolize/naming"
	"ccagent/symbolize/sources"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	maxCoreText  = 256 << 10 // of one binding
	maxCoreTotal = 32 << 20  // of a log
	maxCoreNotes = 2000      // of one binding, so that the event fits
	maxDumpFile  = 16 << 20
	// dumpTries bounds the dumps that are read for one module's sake.
	dumpTries  = 8
	maxFolders = 64 // looked through for dumps
)

// Log writes Core into a log.
type Log struct {
	// Emit writes an event.
	Emit func(eventlog.Event) error
	// Find lists the dumps in a folder's tree, and Read reads one; see FindDumps and
	// sources.Read.
	Find func(module uint32, dir string) ([]Dump, error)
	Read func(ref sources.Ref, maxSize int64) (sources.Content, error)
	Dirs []string // searched besides the folders that GHC ran in
	Last uint32   // last id in use
	// Warn is called with what is left out, in words.
	Warn func(format string, args ...any)

	Count int               // of bindings whose Core was written
	dumps map[string][]Dump // by folder
	bytes int
	full  bool
}

// Module is a module whose addresses are resolved.
type Module struct {
	ID    uint32 // in the log
	Path  string
	Built time.Time
	DWARF *dwarf.Evidence
	Namer *naming.Namer
	Files *sources.Files
	// Blocks and Spans are what was seen, by their ids in the log.
	Blocks map[evidence.BlockID]uint32
	Spans  map[evidence.SpanID]uint32
}

// joiner joins dumps to the procedures of a module.
type joiner struct {
	*Module
	log   *Log
	x     *dwarfindex.Index
	procs map[evidence.ProcID]uint32 // that were seen, by their bindings
}

// Write writes the Core of a module's procedures that were seen, where the build's dumps
// are found.
func (l *Log) Write(ctx context.Context, mod *Module) error {
	m := &joiner{mod, l, mod.DWARF.Index(), mod.Namer.Procedures()}
	units := map[uint32][]dwarfindex.ProcID{}
	for n := range m.procs {
		id := dwarfindex.ProcID(n)
		if u := m.x.Proc(id).Unit; m.x.Unit(u).Haskell {
			units[u] = append(units[u], id)
		}
	}
	order := make([]uint32, 0, len(units))
	for u := range units {
		order = append(order, u)
	}
	slices.Sort(order)
	for _, u := range order {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		slices.Sort(units[u])
		if err := m.unitCore(u, units[u]); err != nil {
			return err
		}
	}
	return nil
}

// unitCore embeds the Core of a compilation unit's procedures.
func (m *joiner) unitCore(u uint32, procs []dwarfindex.ProcID) error {
	unit := m.x.Unit(u)
	source := dwarfindex.CleanPath(unit.Name)
	module := m.DWARF.Owner(u).Module
	var dumps []Dump
	for _, d := range m.log.dumpsIn(m.ID, append([]string{unit.CompDir}, m.log.Dirs...)) {
		if d.likeness(source, module) > 0 {
			dumps = append(dumps, d)
		}
	}
	newer := func(d Dump) int {
		if !m.Built.IsZero() && d.ModTime.After(m.Built) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(dumps, func(a, b Dump) int {
		return cmp.Or(cmp.Compare(newer(a), newer(b)), cmp.Compare(b.likeness(source, module), a.likeness(source, module)), b.ModTime.Compare(a.ModTime))
	})
	// Several builds leave several dumps. The names of internal binders differ
	// between them, so the one that knows the most procedures is the program's.
	why, best := "", -1
	var found []joined
	for i := range dumps[:min(len(dumps), dumpTries)] {
		got, err := m.readDump(&dumps[i], u, procs)
		if err != nil {
			why = fmt.Sprintf("Core of %s left out: %v", source, err)
		}
		if len(got) > len(found) {
			found, best = got, i
		}
	}
	switch {
	case best >= 0:
		return m.emitCore(&dumps[best], source, found, newer(dumps[best]) == 1)
	case why != "":
		m.log.Warn("%s: %s", m.Path, why)
	}
	return nil
}

// dumpsIn lists the dumps of folders, each looked through once.
func (l *Log) dumpsIn(module uint32, dirs []string) []Dump {
	var out []Dump
	for i, dir := range dirs {
		if !filepath.IsAbs(dir) || slices.Contains(dirs[:i], dir) {
			continue
		}
		dumps, ok := l.dumps[dir]
		if !ok && len(l.dumps) < maxFolders {
			var err error
			if dumps, err = l.Find(module, dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				l.Warn("%v: %s", err, dir)
			}
			if l.dumps == nil {
				l.dumps = map[string][]Dump{}
			}
			l.dumps[dir] = dumps
		}
		out = append(out, dumps...)
	}
	return out
}

// joined is a binding of a dump that is a procedure's.
type joined struct {
	coredump.Binding
	binding uint32 // in the log
	also    []uint32
	notes   []coredump.Note
	spans   []sources.Extent // of the notes; zero for those of other files
}

// readDump gives a dump's bindings that are procedures of the unit; none if
// the dump is another module's or build's.
func (m *joiner) readDump(d *Dump, u uint32, procs []dwarfindex.ProcID) ([]joined, error) {
	if d.Size > maxDumpFile {
		return nil, fmt.Errorf("%s has %d bytes, more than the limit of %d", d.Path, d.Size, maxDumpFile)
	}
	text, err := m.log.Read(sources.Ref{Module: m.ID, Name: d.Path}, maxDumpFile)
	if err != nil {
		return nil, err
	}
	all, err := coredump.Parse(string(text.Text))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", d.Path, err)
	}
	owner := m.DWARF.Owner(u)
	pkg, module := owner.Package, owner.Module
	byLinkage := map[string]uint32{}
	for _, id := range procs {
		byLinkage[m.x.Proc(id).Linkage] = m.procs[evidence.ProcID(id)]
	}
	var found []joined
	rest := map[string][]coredump.Binding{} // by what they may be in the source
	taken := map[uint32]bool{}
	for _, b := range all {
		name := strings.TrimPrefix(b.Name, module+".")
		id := byLinkage[hsname.Linkage(pkg, module, name)+"_info"]
		if id == 0 {
			id = byLinkage[b.Unique()+"_info"]
		}
		if id == 0 {
			rest[name] = append(rest[name], b)
		} else if !taken[id] {
			taken[id] = true
			found = append(found, joined{Binding: b, binding: id})
		}
	}
	found = append(found, m.coreByPlace(procs, taken, rest)...)
	if found, err = m.liftedCore(all, found, u, pkg, module, procs); err != nil {
		return nil, err
	}
	// A dump of another build has names in common, but not its notes' places.
	own, known := 0, 0
	for i := range found {
		f := &found[i]
		f.notes = coredump.Notes(f.Text, maxCoreNotes)
		for _, n := range f.notes {
			file, span := sources.ParseLocation(n.Location)
			f.spans = append(f.spans, span)
			if index, ok := m.DWARF.FileOf(file); ok && span != (sources.Extent{}) {
				own++
				if m.DWARF.SpanAt(index, span) != 0 {
					known++
				}
			}
		}
	}
	if known*2 < own {
		return nil, fmt.Errorf("%s is of another build: %d of its %d source notes are not the program's", d.Path, own-known, own)
	}
	return found, nil
}

// coreByPlace matches internal procedures to binders without uniques
// (-dsuppress-uniques), by the binder's name and where its first note begins.
func (m *joiner) coreByPlace(procs []dwarfindex.ProcID, taken map[uint32]bool, rest map[string][]coredump.Binding) []joined {
	type place struct {
		file      uint32
		line, col uint32
	}
	at := map[place][]coredump.Binding{}
	for _, bs := range rest {
		for _, b := range bs {
			if strings.TrimLeft(b.Name, "$") == "" || b.Unique() != "" {
				continue
			}
			notes := coredump.Notes(b.Text, 1)
			if len(notes) == 0 {
				continue
			}
			file, span := sources.ParseLocation(notes[0].Location)
			if index, ok := m.DWARF.FileOf(file); ok {
				p := place{index, span.Line, span.Col}
				at[p] = append(at[p], b)
			}
		}
	}
	var out []joined
	for _, id := range procs {
		p := m.x.Proc(id)
		if n, ok := hsname.Parse(p.Linkage); ok && !n.Internal || p.TickParent != dwarfindex.NoBlock || taken[m.procs[evidence.ProcID(id)]] {
			continue
		}
		if bs := at[place{p.Pos.File, p.Pos.Line, p.Pos.Col}]; len(bs) == 1 && p.Pos.Line != 0 {
			taken[m.procs[evidence.ProcID(id)]] = true
			out = append(out, joined{Binding: bs[0], binding: m.procs[evidence.ProcID(id)]})
		}
	}
	return out
}

// liftedCore finds the Core of procedures that were local to a binding when it
// was written, and that GHC lifted out of it later, so that their name and
// parents do not show it: it is the binding that holds all notes of their code. found gains the
// bindings that hold such code.
func (m *joiner) liftedCore(all []coredump.Binding, found []joined, u uint32, pkg, module string, procs []dwarfindex.ProcID) ([]joined, error) {
	at := map[uint32]int{} // position in found by binding
	for i := range found {
		at[found[i].binding] = i
	}
	blocks := map[dwarfindex.ProcID][]dwarfindex.BlockID{}
	for n := range m.Blocks {
		b := dwarfindex.BlockID(n)
		p := m.x.Block(b).Proc
		blocks[p] = append(blocks[p], b)
	}
	var spans []map[evidence.SpanID]bool // of each binding of the dump, once asked for
	var linkages map[string]dwarfindex.ProcID
	for _, id := range procs {
		want := map[evidence.SpanID]bool{}
		covered := false
		for _, b := range blocks[id] {
			for _, p := range append(m.x.Enclosing(nil, b), id) {
				_, ok := at[m.procs[evidence.ProcID(p)]]
				covered = covered || ok
			}
			for _, c := range m.x.Causes(nil, b) {
				want[evidence.SpanID(c.Span)] = true
			}
		}
		if covered || len(want) == 0 {
			continue
		}
		if spans == nil {
			spans = m.spansOfCore(all)
			linkages = map[string]dwarfindex.ProcID{}
			for i := 1; i <= m.x.Procs(); i++ {
				if p := m.x.Proc(dwarfindex.ProcID(i)); p.Unit == u {
					linkages[p.Linkage] = p.ID
				}
			}
		}
		i := holder(all, spans, want, localName(m.x.Proc(id).Linkage))
		if i < 0 {
			continue
		}
		owner := linkages[hsname.Linkage(pkg, module, strings.TrimPrefix(all[i].Name, module+"."))+"_info"]
		if owner == 0 {
			owner = linkages[all[i].Unique()+"_info"]
		}
		if owner == 0 { // it has no code of its own left
			owner = id
		}
		binding, err := m.Namer.Procedure(evidence.ProcID(owner))
		if err != nil {
			return nil, err
		}
		k, ok := at[binding]
		if !ok {
			k = len(found)
			at[binding] = k
			found = append(found, joined{Binding: all[i], binding: binding})
		}
		if found[k].Line == all[i].Line && m.procs[evidence.ProcID(id)] != binding && len(found[k].also) < maxCoreNotes {
			found[k].also = append(found[k].also, m.procs[evidence.ProcID(id)])
		}
	}
	return found, nil
}

// spansOfCore gives the index's spans in each binding of a dump.
func (m *joiner) spansOfCore(all []coredump.Binding) []map[evidence.SpanID]bool {
	out := make([]map[evidence.SpanID]bool, len(all))
	for i := range all {
		out[i] = map[evidence.SpanID]bool{}
		for _, n := range coredump.Notes(all[i].Text, maxCoreNotes) {
			file, span := sources.ParseLocation(n.Location)
			if index, ok := m.DWARF.FileOf(file); ok {
				if id := m.DWARF.SpanAt(index, span); id != 0 {
					out[i][id] = true
				}
			}
		}
	}
	return out
}

// holder gives the binding with all the notes that are wanted: the only one, or
// of several the only one that defines the name; −1 if there is none.
func holder(all []coredump.Binding, spans []map[evidence.SpanID]bool, want map[evidence.SpanID]bool, name string) int {
	only, named, several, severalNamed := -1, -1, false, false
	for i := range all {
		has := true
		for s := range want {
			has = has && spans[i][s]
		}
		if !has {
			continue
		}
		several, only = only >= 0, i
		if name != "" && strings.Contains(all[i].Text, " "+name+"_") {
			severalNamed, named = named >= 0, i
		}
	}
	switch {
	case named >= 0 && !severalNamed:
		return named
	case only >= 0 && !several:
		return only
	}
	return -1
}

// localName is the name that a lifted function had: "$wfrom" of the linkage name
// for "$l$wfrom".
func localName(symbol string) string {
	n, ok := hsname.Parse(symbol)
	if !ok || n.Internal {
		return ""
	}
	name, ok := strings.CutPrefix(n.Name, "$l")
	if !ok {
		return ""
	}
	return strings.TrimRight(name, "0123456789")
}

func (m *joiner) emitCore(d *Dump, source string, found []joined, newer bool) error {
	slices.SortFunc(found, func(a, b joined) int { return cmp.Compare(a.Line, b.Line) })
	file := uint32(0)
	if index, ok := m.DWARF.FileOf(source); ok {
		f, err := m.Files.File(sources.FileID(index + 1))
		if err != nil {
			return err
		}
		file = f.ID
	}
	for i := range found {
		f := &found[i]
		ev := eventlog.Core{Binding: f.binding, File: file, Name: eventlog.CleanName(f.Name), Dump: eventlog.CleanName(d.Path), Line: uint32(f.Line), Also: f.also}
		text := f.Text
		switch {
		case m.log.bytes+min(len(text), maxCoreText) > maxCoreTotal:
			if !m.log.full {
				m.log.full = true
				m.log.Warn("the log holds enough Core already: that of some bindings is left out")
			}
			return nil
		case len(text) > maxCoreText:
			text = text[:strings.LastIndexByte(text[:maxCoreText], '\n')+1]
			ev.Problem = fmt.Sprintf("cut: the binding's Core has %d bytes", len(f.Text))
		case newer:
			ev.Problem = "the dump is newer than the binary"
		}
		lines := uint32(strings.Count(text, "\n")) + 1
		for j, n := range f.notes {
			path, span := sources.ParseLocation(n.Location)
			index, ok := m.DWARF.FileOf(path)
			id := m.Spans[m.DWARF.SpanAt(index, span)]
			if ok && f.spans[j] != (sources.Extent{}) && id != 0 && n.Line <= lines {
				ev.Notes = append(ev.Notes, eventlog.CoreNote{Span: id, Line: n.Line, Col: n.Col, EndLine: n.EndLine, EndCol: n.EndCol})
			}
		}
		m.log.Last++
		m.log.Count++
		m.log.bytes += len(text)
		ev.ID, ev.TextSize = m.log.Last, uint64(len(text))
		if err := m.log.Emit(&ev); err != nil {
			return err
		}
		for off := 0; off < len(text); off += eventlog.MaxTextPart {
			piece := eventlog.CoreText{Core: ev.ID, Offset: uint64(off), Text: []byte(text[off:min(len(text), off+eventlog.MaxTextPart)])}
			if err := m.log.Emit(&piece); err != nil {
				return err
			}
		}
	}
	return nil
}
