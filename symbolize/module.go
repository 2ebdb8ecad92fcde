package symbolize

import (
	"bytes"
	"ccagent/eventlog"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/core"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/evidence/dwarf"
	"ccagent/symbolize/evidence/ipe"
	"ccagent/symbolize/evidence/symtab"
	"ccagent/symbolize/sources"
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// opened is a module whose evidence is open.
type opened struct {
	mod     *Module
	elf     *elffile.File // nil if the file cannot be read
	info    binary.Info
	symbols *symtab.Table
	keeps   bool                // what is found in symbols
	dwarf   *dwarf.Evidence     // nil without debug information
	ipe     *ipe.Evidence       // nil without an info table map
	makers  map[uint64][]uint64 // code that makes standard thunks, by their info table
}

// worthKeeping is the size of files from which on what was found in their symbols is kept.
const worthKeeping = 1 << 20

// foundName is what that is kept as. How much is read depends on the memory.
func (r *run) foundName() string { return fmt.Sprintf("ccagent found in symbols 3, %d", r.job.Memory) }

// module resolves one module.
func (r *run) module(ctx context.Context, mod *Module) error {
	m := &opened{mod: mod}
	r.bindings.Program = mod.ID
	info := eventlog.ModuleSymbols{Module: mod.ID}
	problems := m.open(ctx, r, &info)
	info.Problem = eventlog.CleanName(strings.Join(problems, "; "))
	if info.Problem != "" {
		r.problem(mod.Path, info.Problem)
	}
	if err := r.emit(&info); err != nil {
		return err
	}
	if m.elf == nil {
		return nil
	}
	finder := &sources.Finder{Read: r.job.ReadSource, Module: mod.ID, Root: mod.Root, Dirs: r.job.SourceDirs, Built: mod.ModTime}
	s := &resolver{run: r, module: mod.ID, finder: finder, makers: m.makers}
	var closures func(uint64) string
	if m.ipe != nil {
		closures = m.ipe.Closures
	}
	if m.dwarf != nil {
		s.lines = m.dwarf
		s.debug = s.add(m.dwarf, m.symbols, closures)
	}
	debug := s.debug
	if m.ipe != nil {
		s.add(m.ipe, m.symbols, nil)
	}
	s.add(symtab.New(ctx, m.symbols, m.elf, &m.info, r.memory()/4), m.symbols, nil)
	if err := s.resolve(ctx, mod.Addresses); err != nil {
		return err
	}
	if parts := m.symbols.Found(); m.keeps && parts != nil {
		if err := dwarf.StoreParts(r.job.Cache, mod.ID, r.foundName(), parts); err != nil {
			r.problem(mod.Path, err.Error())
		}
	}
	if debug == nil || r.job.FindDumps == nil || r.job.ReadSource == nil || !r.job.EmbedSource {
		return nil
	}
	return r.core.Write(ctx, &core.Module{
		ID: mod.ID, Path: mod.Path, Built: mod.ModTime, DWARF: m.dwarf, Namer: debug.namer, Files: debug.files, Blocks: debug.blocks, Spans: debug.spans,
	})
}

// open reads the module's evidence, as far as it is whole, and says what is missing.
func (m *opened) open(ctx context.Context, r *run, info *eventlog.ModuleSymbols) (problems []string) {
	mod := m.mod
	if mod.File == nil {
		if mod.Problem != "" {
			return []string{mod.Problem}
		}
		return []string{"the file could not be opened"}
	}
	if mod.Problem != "" {
		problems = append(problems, mod.Problem)
	}
	f, err := elffile.Open(mod.File, mod.Size)
	if err != nil {
		return append(problems, err.Error())
	}
	if m.elf = f; mod.Info != nil {
		m.info = *mod.Info
	} else {
		m.info = binary.IdentifyFile(f)
	}
	info.GHCVersion, info.Way, info.HasIPE = m.info.GHCVersion, string(m.info.Way), m.info.HasIPE
	symbolsFrom, dwarfFrom := f, f
	if mod.Debug != nil && (!m.info.HasSymtab || !m.info.HasDWARF) {
		d, err := m.debugFile()
		if err != nil {
			problems = append(problems, err.Error())
		} else {
			if !m.info.HasSymtab && d.HasSymtab() {
				symbolsFrom = d
			}
			if !m.info.HasDWARF && d.DebugSection(".debug_info") != nil {
				dwarfFrom = d
			}
		}
	}
	memory := r.memory()
	if symbolsFrom == f && !m.info.HasSymtab {
		d, err := f.MiniDebug(memory / 8)
		if err != nil {
			problems = append(problems, err.Error())
		} else if d != nil && d.HasSymtab() {
			symbolsFrom = d
		}
	}
	all, err := m.readSymbols(r, symbolsFrom)
	if err != nil {
		problems = append(problems, fmt.Sprintf("symbols: %v", err))
	}
	info.HasSymtab = symbolsFrom.HasSymtab() && err == nil
	info.HasDWARF = dwarfFrom.DebugSection(".debug_info") != nil
	switch {
	case info.HasDWARF && r.job.SymbolsOnly:
		info.HasNotes = m.info.HasNotes
		return append(problems, "debug information left out: reading it went over the budget (--symbolize-memory, --symbolize-time)")
	case info.HasDWARF:
		if m.info.HasNotes {
			if err := m.findMakers(ctx); err != nil {
				problems = append(problems, err.Error())
			}
		}
		asked := lookups(mod.Addresses)
		for _, code := range m.makers {
			asked = append(asked, code...)
		}
		slices.Sort(asked)
		var more []string
		m.dwarf, more = dwarf.Open(ctx, dwarfFrom, f, m.symbols, dwarf.Options{
			Memory: memory / 2, Cache: r.job.Cache, Module: mod.ID, Addresses: asked, Only: !r.job.EmbedSource,
			Warn: func(format string, args ...any) { r.problem(mod.Path, fmt.Sprintf(format, args...)) },
		})
		problems = append(problems, more...)
	}
	var dirs []string
	if m.dwarf != nil {
		info.GHCVersion, info.HasNotes = cmp.Or(info.GHCVersion, m.dwarf.GHCVersion()), m.dwarf.HasNotes()
		dirs = m.dwarf.Dirs()
	}
	if m.info.HasIPE {
		if m.ipe, err = ipe.Open(ctx, f, mod.Path, all, m.symbols, info.GHCVersion, dirs, memory/4); err != nil {
			problems = append(problems, err.Error())
		}
	}
	return append(problems, m.missing(info)...)
}

// readSymbols opens the module's symbols. Of a file that was read before, what was kept of them says where they are:
// then little more is read than what is asked for.
func (m *opened) readSymbols(r *run, from *elffile.File) (*elffile.SymbolTable, error) {
	limit := r.memory() / 4
	m.keeps = r.job.Cache != nil && m.elf.Size() >= worthKeeping
	var parts map[string][]byte
	if m.keeps {
		parts = dwarf.LoadParts(r.job.Cache, m.mod.ID, r.foundName(), r.memory()/8)
	}
	if known := symtab.KnownOrder(parts, limit/elf.Sym64Size); known != nil {
		if all := from.KnownSymbolTable(known.Files(), limit); all != nil {
			if m.symbols = known.Table(all); m.symbols != nil {
				m.symbols.Recall(parts)
				return all, nil
			}
		}
	}
	all, err := from.SymbolTable(limit)
	m.keeps = m.keeps && err == nil
	m.symbols = symtab.NewTable(m.elf, all, m.info.RTS)
	m.symbols.Recall(parts)
	return all, err
}

// debugFile opens the module's separate debug file, if it is of the same build.
func (m *opened) debugFile() (*elffile.File, error) {
	d, err := elffile.Open(m.mod.Debug, m.mod.DebugSize)
	if err != nil {
		return nil, fmt.Errorf("separate debug file: %w", err)
	}
	if m.info.BuildID != nil && !bytes.Equal(d.BuildID(), m.info.BuildID) {
		return nil, errors.New("separate debug file is of another build")
	}
	return d, nil
}

// missing says what would bring better names.
func (m *opened) missing(info *eventlog.ModuleSymbols) []string {
	switch {
	case !m.info.GHC:
		return nil
	case !info.HasNotes && m.ipe != nil && m.info.Arch == "arm64":
		return nil // the info table map is all that GHC writes there
	case !info.HasNotes && m.ipe != nil:
		return []string{"no source notes, only an info table map, which places whole closures: build with ghc -g3"}
	case !info.HasSymtab && !info.HasDWARF && !m.info.DynamicHaskell:
		return []string{"stripped: no symbols and no debug information; build with ghc -g3 and do not strip (cabal: --disable-executable-stripping)"}
	case !info.HasDWARF:
		return []string{"no debug information: build with ghc -g3"}
	case !info.HasNotes:
		return []string{"no source notes: build with ghc -g3"}
	}
	return nil
}
