package symbolize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ccagent/eventlog"
	"ccagent/symbolize/core"
	"ccagent/symbolize/coredump"
	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/hsname"
	"ccagent/symbolize/ipe"
	"ccagent/symbolize/sources"
)

const (
	maxCoreText  = 256 << 10 // of one binding
	maxCoreTotal = 32 << 20  // of a log
	maxCoreNotes = 2000      // of one binding, so that the event fits
	maxDumpFile  = 16 << 20
	// dumpTries bounds the dumps that are read for one module's sake.
	dumpTries = 8
)

// core embeds the Core of the module's procedures that were seen, where the
// build's dumps are found.
func (m *moduleRun) core(ctx context.Context) error {
	if m.x == nil || m.r.job.FindDumps == nil || m.r.job.ReadSource == nil || !m.r.job.EmbedSource {
		return nil
	}
	units := map[uint32][]dwarfindex.ProcID{}
	for id := range m.procs {
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
func (m *moduleRun) unitCore(u uint32, procs []dwarfindex.ProcID) error {
	unit := m.x.Unit(u)
	source := dwarfindex.CleanPath(unit.Name)
	_, module := m.unitModule(u)
	var dumps []core.Dump
	for _, d := range m.r.dumpsIn(m.mod.ID, append([]string{unit.CompDir}, m.r.job.CoreDirs...)) {
		if d.Likeness(source, module) > 0 {
			dumps = append(dumps, d)
		}
	}
	newer := func(d core.Dump) int {
		if !m.mod.ModTime.IsZero() && d.ModTime.After(m.mod.ModTime) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(dumps, func(a, b core.Dump) int {
		return cmp.Or(cmp.Compare(newer(a), newer(b)), cmp.Compare(b.Likeness(source, module), a.Likeness(source, module)), b.ModTime.Compare(a.ModTime))
	})
	// Several builds leave several dumps. The names of internal binders differ
	// between them, so the one that knows the most procedures is the program's.
	why, best := "", -1
	var found []foundCore
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
		m.r.problem("%s: %s", m.mod.Path, why)
	}
	return nil
}

// dumpsIn lists the dumps of folders, each looked through once.
func (r *run) dumpsIn(module uint32, dirs []string) []core.Dump {
	var out []core.Dump
	for i, dir := range dirs {
		if !filepath.IsAbs(dir) || slices.Contains(dirs[:i], dir) {
			continue
		}
		dumps, ok := r.dumps[dir]
		if !ok && len(r.dumps) < maxSourceDirs {
			var err error
			if dumps, err = r.job.FindDumps(module, dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				r.problem("%v: %s", err, dir)
			}
			r.dumps[dir] = dumps
		}
		out = append(out, dumps...)
	}
	return out
}

// foundCore is a binding of a dump that is a procedure's.
type foundCore struct {
	coredump.Binding
	binding uint32 // in the log
	also    []uint32
	notes   []coredump.Note
	spans   []ipe.Span // of the notes; zero for those of other files
}

// readDump gives a dump's bindings that are procedures of the unit; none if
// the dump is another module's or build's.
func (m *moduleRun) readDump(d *core.Dump, u uint32, procs []dwarfindex.ProcID) ([]foundCore, error) {
	if d.Size > maxDumpFile {
		return nil, fmt.Errorf("%s has %d bytes, more than the limit of %d", d.Path, d.Size, maxDumpFile)
	}
	text, err := m.r.job.ReadSource(sources.Ref{Module: m.mod.ID, Name: d.Path}, maxDumpFile)
	if err != nil {
		return nil, err
	}
	all, err := coredump.Parse(string(text.Text))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", d.Path, err)
	}
	pkg, module := m.unitModule(u)
	byLinkage := map[string]uint32{}
	for _, id := range procs {
		byLinkage[m.x.Proc(id).Linkage] = m.procs[id]
	}
	var found []foundCore
	rest := map[string][]coredump.Binding{} // by what they may be in the source
	taken := map[uint32]bool{}
	for _, b := range all {
		name := strings.TrimPrefix(b.Name, module+".")
		id := byLinkage[linkage(pkg, module, name)+"_info"]
		if id == 0 {
			id = byLinkage[b.Unique()+"_info"]
		}
		if id == 0 {
			rest[name] = append(rest[name], b)
		} else if !taken[id] {
			taken[id] = true
			found = append(found, foundCore{Binding: b, binding: id})
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
			file, span := ipe.ParseLocation(n.Location)
			f.spans = append(f.spans, span)
			if index, ok := m.fileIndex[dwarfindex.CleanPath(file)]; ok && span != (ipe.Span{}) {
				own++
				if m.hasSpan(index, span) {
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
func (m *moduleRun) coreByPlace(procs []dwarfindex.ProcID, taken map[uint32]bool, rest map[string][]coredump.Binding) []foundCore {
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
			file, span := ipe.ParseLocation(notes[0].Location)
			if index, ok := m.fileIndex[dwarfindex.CleanPath(file)]; ok {
				p := place{index, span.Line, span.Col}
				at[p] = append(at[p], b)
			}
		}
	}
	var out []foundCore
	for _, id := range procs {
		p := m.x.Proc(id)
		if n, ok := hsname.Parse(p.Linkage); ok && !n.Internal || p.TickParent != dwarfindex.NoBlock || taken[m.procs[id]] {
			continue
		}
		if bs := at[place{p.Pos.File, p.Pos.Line, p.Pos.Col}]; len(bs) == 1 && p.Pos.Line != 0 {
			taken[m.procs[id]] = true
			out = append(out, foundCore{Binding: bs[0], binding: m.procs[id]})
		}
	}
	return out
}

// liftedCore finds the Core of procedures that were local to a binding when it
// was written, and that GHC lifted out of it later, so that their name and
// parents tell nothing: it is where all notes of their code are. found gains the
// bindings that hold such code.
func (m *moduleRun) liftedCore(all []coredump.Binding, found []foundCore, u uint32, pkg, module string, procs []dwarfindex.ProcID) ([]foundCore, error) {
	at := map[uint32]int{} // position in found by binding
	for i := range found {
		at[found[i].binding] = i
	}
	blocks := map[dwarfindex.ProcID][]dwarfindex.BlockID{}
	for b := range m.blocks {
		p := m.x.Block(b).Proc
		blocks[p] = append(blocks[p], b)
	}
	var spans []map[uint32]bool // of each binding of the dump, once asked for
	var linkages map[string]dwarfindex.ProcID
	for _, id := range procs {
		want := map[uint32]bool{}
		covered := false
		for _, b := range blocks[id] {
			for _, p := range append(m.x.Enclosing(nil, b), id) {
				_, ok := at[m.procs[p]]
				covered = covered || ok
			}
			for _, c := range m.x.Causes(nil, b) {
				want[c.Span] = true
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
		owner := linkages[linkage(pkg, module, strings.TrimPrefix(all[i].Name, module+"."))+"_info"]
		if owner == 0 {
			owner = linkages[all[i].Unique()+"_info"]
		}
		if owner == 0 { // it has no code of its own left
			owner = id
		}
		binding, err := m.proc(owner)
		if err != nil {
			return nil, err
		}
		k, ok := at[binding]
		if !ok {
			k = len(found)
			at[binding] = k
			found = append(found, foundCore{Binding: all[i], binding: binding})
		}
		if found[k].Line == all[i].Line && m.procs[id] != binding && len(found[k].also) < maxCoreNotes {
			found[k].also = append(found[k].also, m.procs[id])
		}
	}
	return found, nil
}

// spansOfCore gives the index's spans in each binding of a dump.
func (m *moduleRun) spansOfCore(all []coredump.Binding) []map[uint32]bool {
	out := make([]map[uint32]bool, len(all))
	for i := range all {
		out[i] = map[uint32]bool{}
		for _, n := range coredump.Notes(all[i].Text, maxCoreNotes) {
			file, span := ipe.ParseLocation(n.Location)
			if index, ok := m.fileIndex[dwarfindex.CleanPath(file)]; ok {
				if id := m.spanIndex()[spanPlace{index, span}]; id != 0 {
					out[i][id] = true
				}
			}
		}
	}
	return out
}

// holder gives the binding with all the notes that are wanted: the only one, or
// of several the only one that defines the name; −1 if there is none.
func holder(all []coredump.Binding, spans []map[uint32]bool, want map[uint32]bool, name string) int {
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

// hasSpan reports whether the program has a note at a place.
func (m *moduleRun) hasSpan(file uint32, s ipe.Span) bool {
	_, ok := m.spanIndex()[spanPlace{file, s}]
	return ok
}

type spanPlace struct {
	file uint32
	span ipe.Span
}

// spanIndex finds the index's spans by their places.
func (m *moduleRun) spanIndex() map[spanPlace]uint32 {
	if m.spanAt == nil {
		m.spanAt = make(map[spanPlace]uint32, m.x.Spans())
		for i := 1; i <= m.x.Spans(); i++ {
			s := m.x.Span(uint32(i))
			m.spanAt[spanPlace{s.File, ipe.Span{Line: s.Line, Col: s.Col, EndLine: s.EndLine, EndCol: s.EndCol}}] = uint32(i)
		}
	}
	return m.spanAt
}

func (m *moduleRun) emitCore(d *core.Dump, source string, found []foundCore, newer bool) error {
	slices.SortFunc(found, func(a, b foundCore) int { return cmp.Compare(a.Line, b.Line) })
	file := uint32(0)
	if index, ok := m.fileIndex[source]; ok {
		f, err := m.file(index)
		if err != nil {
			return err
		}
		file = f.id
	}
	for i := range found {
		f := &found[i]
		ev := eventlog.Core{Binding: f.binding, File: file, Name: clean(f.Name), Dump: clean(d.Path), Line: uint32(f.Line), Also: f.also}
		text := f.Text
		switch {
		case m.r.coreBytes+min(len(text), maxCoreText) > maxCoreTotal:
			if !m.r.coreFull {
				m.r.coreFull = true
				m.r.problem("the log holds enough Core already: that of some bindings is left out")
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
			path, span := ipe.ParseLocation(n.Location)
			index, ok := m.fileIndex[dwarfindex.CleanPath(path)]
			id := m.spans[m.spanIndex()[spanPlace{index, span}]]
			if ok && f.spans[j] != (ipe.Span{}) && id != 0 && n.Line <= lines {
				ev.Notes = append(ev.Notes, eventlog.CoreNote{Span: id, Line: n.Line, Col: n.Col, EndLine: n.EndLine, EndCol: n.EndCol})
			}
		}
		m.r.coreCount++
		m.r.sum.Cores++
		m.r.coreBytes += len(text)
		ev.ID, ev.TextSize = uint32(m.r.coreCount), uint64(len(text))
		if err := m.r.emit(&ev); err != nil {
			return err
		}
		for off := 0; off < len(text); off += eventlog.MaxTextPiece {
			piece := eventlog.CoreText{Core: ev.ID, Offset: uint64(off), Text: []byte(text[off:min(len(text), off+eventlog.MaxTextPiece)])}
			if err := m.r.emit(&piece); err != nil {
				return err
			}
		}
	}
	return nil
}
