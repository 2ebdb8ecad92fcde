package oracle

import (
	"bufio"
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ccagent/bpf/replay/snapshot"
)

// Program is what the mapped files of a process say about its code.
type Program struct {
	root     string // of the process's file system
	mappings []mapping
	files    map[string]*file
	infos    map[uint64]info // cache of info tables, by run-time address
}

type mapping struct {
	lo, hi, bias uint64
	file         *file
}

// Mapping is a range of mapped code.
type Mapping struct {
	Start, End, Bias uint64
	Path             string
}

// Mappings lists a process's mapped code, the program first.
func (p *Program) Mappings() []Mapping {
	var all []Mapping
	for _, m := range p.mappings {
		all = append(all, Mapping{m.lo, m.hi, m.bias, m.file.path})
	}
	return all
}

type file struct {
	path    string
	name    string
	symbols []elf.Symbol // of code, sorted by address
	rows    []snapshot.Row
	entry   uint64
	haskell bool // contains the run-time system or other Haskell code
}

// Open reads the files that a process has mapped as executable.
func Open(pid int) (*Program, error) {
	root, err := os.Readlink(fmt.Sprintf("/proc/%d/root", pid))
	if err != nil {
		return nil, err
	}
	p := &Program{root: root, files: map[string]*file{}, infos: map[uint64]info{}}
	return p, p.Refresh(pid)
}

// Refresh reads a process's mappings again. Files already read are kept, even if it is
// another process.
func (p *Program) Refresh(pid int) error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return err
	}
	defer f.Close()
	p.mappings = nil
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 6 || !strings.Contains(fields[1], "x") || fields[5][0] != '/' {
			continue
		}
		var m mapping
		var offset uint64
		if _, err := fmt.Sscanf(fields[0]+" "+fields[2], "%x-%x %x", &m.lo, &m.hi, &offset); err != nil {
			return fmt.Errorf("read mappings of process %d: %w", pid, err)
		}
		path := filepath.Join(p.root, fields[5])
		if m.file = p.files[fields[5]]; m.file == nil {
			if m.file, err = openFile(path); err != nil {
				return fmt.Errorf("read %s: %w", path, err)
			}
			p.files[fields[5]] = m.file
		}
		if m.bias, err = bias(path, offset, m.lo); err != nil {
			return err
		}
		p.mappings = append(p.mappings, m)
	}
	return nil
}

// Text returns the ranges that contain info tables, as the agent would: the executable's
// code, and the libraries' if there is Haskell code in them.
func (p *Program) Text() (text [2]snapshot.Range) {
	for i, m := range p.mappings {
		switch {
		case m.file == p.mappings[0].file:
			if i == 0 {
				text[0].Lo = m.lo
			}
			text[0] = snapshot.Range{Lo: min(text[0].Lo, m.lo), Hi: max(text[0].Hi, m.hi)}
		case m.file.haskell:
			text[1] = snapshot.Range{Lo: 0x7000_0000_0000, Hi: 0x8000_0000_0000}
		}
	}
	return text
}

func bias(path string, offset, lo uint64) (uint64, error) {
	e, err := elf.Open(path)
	if err != nil {
		return 0, err
	}
	defer e.Close()
	for _, ph := range e.Progs {
		if ph.Type == elf.PT_LOAD && ph.Flags&elf.PF_X != 0 && ph.Off&^0xfff == offset&^0xfff {
			return lo - ph.Vaddr&^0xfff, nil
		}
	}
	return 0, fmt.Errorf("%s: no segment of code at offset %#x", path, offset)
}

func openFile(path string) (*file, error) {
	e, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	f := &file{path: path, name: filepath.Base(path), entry: e.Entry}
	symbols, err := e.Symbols()
	if err != nil {
		symbols, _ = e.DynamicSymbols()
	}
	for _, s := range symbols {
		if int(s.Section) >= len(e.Sections) || s.Name == "" || s.Section == 0 {
			continue
		}
		f.haskell = f.haskell || strings.HasPrefix(s.Name, "stg_") || strings.HasSuffix(s.Name, "_con_info")
		if e.Sections[s.Section].Flags&elf.SHF_EXECINSTR != 0 {
			f.symbols = append(f.symbols, s)
		}
	}
	// Of several symbols at one address the preferred one comes last.
	slices.SortStableFunc(f.symbols, func(a, b elf.Symbol) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value),
			cmp.Compare(elf.ST_BIND(a.Info), elf.ST_BIND(b.Info)), cmp.Compare(b.Name, a.Name))
	})
	var limits []snapshot.Range
	if d, err := e.DWARF(); err == nil {
		if limits, err = haskellUnits(d); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{".eh_frame", ".debug_frame"} {
		s := e.Section(name)
		if s == nil || s.Type == elf.SHT_NOBITS {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return nil, err
		}
		section := frameSection{data, s.Addr, name == ".eh_frame"}
		rows, err := section.table(limits)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		f.rows = append(f.rows, rows...)
	}
	slices.SortStableFunc(f.rows, func(a, b snapshot.Row) int { return cmp.Compare(a.Lo, b.Lo) })
	return f, nil
}

// haskellUnits returns the address ranges of GHC's compilation units.
func haskellUnits(d *dwarf.Data) ([]snapshot.Range, error) {
	const languageHaskell = 0x18
	var units []snapshot.Range
	for r := d.Reader(); ; r.SkipChildren() {
		e, err := r.Next()
		if err != nil || e == nil {
			return units, err
		}
		if lang, _ := e.Val(dwarf.AttrLanguage).(int64); e.Tag != dwarf.TagCompileUnit || lang != languageHaskell {
			continue
		}
		ranges, err := d.Ranges(e)
		if err != nil {
			return nil, err
		}
		for _, r := range ranges {
			units = append(units, snapshot.Range{Lo: r[0], Hi: r[1]})
		}
	}
}

func (p *Program) find(address uint64) *mapping {
	for i := range p.mappings {
		if m := &p.mappings[i]; address >= m.lo && address < m.hi {
			return m
		}
	}
	return nil
}

// Row returns the unwinding row that covers an address, with run-time addresses.
func (p *Program) Row(pc uint64) (snapshot.Row, bool) {
	m := p.find(pc)
	if m == nil {
		return snapshot.Row{}, false
	}
	at := pc - m.bias
	i, _ := slices.BinarySearchFunc(m.file.rows, at, func(r snapshot.Row, a uint64) int {
		if r.Lo <= a {
			return -1
		}
		return 1
	})
	if i == 0 || at >= m.file.rows[i-1].Hi {
		return snapshot.Row{}, false
	}
	r := m.file.rows[i-1]
	r.Lo += m.bias
	r.Hi += m.bias
	return r, true
}

// Name describes an address: the symbol before it and the distance.
func (p *Program) Name(address uint64) string {
	m := p.find(address)
	if m == nil {
		return ""
	}
	at := address - m.bias
	i, _ := slices.BinarySearchFunc(m.file.symbols, at, func(s elf.Symbol, a uint64) int {
		if s.Value <= a {
			return -1
		}
		return 1
	})
	if i == 0 {
		return m.file.name
	}
	s := m.file.symbols[i-1]
	if s.Value == at {
		return s.Name
	}
	return fmt.Sprintf("%s+%#x", s.Name, at-s.Value)
}

// Entry returns the address of the program's entry point, where its libraries are mapped.
func (p *Program) Entry() uint64 {
	if len(p.mappings) == 0 {
		return 0
	}
	return p.mappings[0].file.entry + p.mappings[0].bias
}

// Lookup returns the address of a function, 0 if no mapped file defines it.
func (p *Program) Lookup(name string) uint64 {
	for _, m := range p.mappings {
		for _, s := range m.file.symbols {
			if s.Name == name {
				return s.Value + m.bias
			}
		}
	}
	return 0
}
