package process

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"sort"
	"time"

	"ccagent/symbolize/cfi"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/worker"
)

// Rows for the Haskell code of large programs are compiled by need, a page at a time: where the
// stack walker went without. It finds the caller's frame there by a scan from Sp.

// wholeCode is up to how many bytes of code a program's call frame information is compiled as a
// whole: that takes some 200 ms of CPU time.
const wholeCode = 8 << 20

// missesOfPage is how many samples a page has had without rows when it is asked for. What is
// sampled once is mostly not sampled again.
const missesOfPage = 2

// worthAsking is how many samples of such pages there are before any is asked for: to start the
// child takes some 50 ms of CPU time.
const worthAsking = 16

// pages says of a module's code what the walker has rows for. The goroutine that compiles does not
// use it.
type pages struct {
	table  *unwindTable
	rows   []byte         // of the frame sections
	missed map[uint32]int // samples, by page; -1 once it was asked for
	ripe   []uint32       // to be asked for
	lacked int            // samples of those
	asked  bool           // a request is under way
}

// byNeed reports whether the rows of a module are compiled by need, if modules with more than
// so many bytes of code are.
func (mod *Module) byNeed(whole uint64) bool {
	return mod.elf != nil && mod.elf.Machine == elf.EM_X86_64 && (mod.Binary.GHC || mod.Binary.RTS) && codeSize(mod.Segments) > whole
}

// codeSize is how many bytes of a file are mapped as code.
func codeSize(segments []elffile.Segment) (size uint64) {
	for _, s := range segments {
		if s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 {
			size += s.Filesz
		}
	}
	return size
}

// NoteUnwound notes that a sample was unwound up to a run-time address, which may lack rows.
func (ps *Table) NoteUnwound(im *Image, addr uint64) {
	m := im.MappingOf(addr)
	if m == nil || m.Module.unwind == nil || m.Module.unwind.pages == nil {
		return
	}
	m.Module.unwind.pages.note(addr - m.Bias)
}

// note notes a sample at a module address.
func (p *pages) note(addr uint64) {
	if addr < p.table.base {
		return
	}
	rel := addr - p.table.base
	page := uint32(rel / cfi.PageBytes)
	n := p.missed[page]
	if n < 0 || p.covers(rel) {
		return
	}
	n++
	p.missed[page] = n
	switch {
	case n == missesOfPage:
		p.ripe = append(p.ripe, page)
		p.lacked += n
	case n > missesOfPage:
		p.lacked++
	}
}

// covers reports whether the frame sections have a rule at an address, counted from the base.
func (p *pages) covers(rel uint64) bool {
	row := func(i int) []byte { return p.rows[i*cfi.RowSize:] }
	i := sort.Search(len(p.rows)/cfi.RowSize, func(i int) bool { return uint64(binary.LittleEndian.Uint32(row(i))) > rel })
	return i > 0 && binary.LittleEndian.Uint32(row(i - 1)[4:]) != 0
}

// pagesWanted asks for pages of a module, and pagesDone are their rows.
type pagesWanted struct {
	module *Module
	pages  []uint32
}

type pagesDone struct {
	module *Module
	pages  []worker.UnwindPage
	err    error
}

// idlePages is after how long without requests the children that compile pages are stopped.
const idlePages = 10 * time.Second

// compilePages compiles pages on behalf of the sampling code.
func (t *tables) compilePages(ctx context.Context, w pagesWanted) {
	of := t.paged[w.module]
	if of == nil {
		return
	}
	made, err := of.Compile(ctx, w.pages)
	if ctx.Err() == nil {
		t.pagesDone <- pagesDone{w.module, made, err}
	}
}

// closePages stops the children, and keeps what they have made in the cache.
func (t *tables) closePages() {
	for _, of := range t.paged {
		of.Close()
	}
}

// AskForPages has the pages compiled that samples lacked, and loads those that are.
func (ps *Table) AskForPages() error {
	t := ps.tables
	for len(t.pagesDone) > 0 {
		if err := ps.takePages(<-t.pagesDone); err != nil {
			return err
		}
	}
	if t.over {
		return nil
	}
	for _, mod := range t.withPages {
		p := mod.unwind.pages
		if p == nil || p.asked || p.lacked < worthAsking {
			continue
		}
		for _, page := range p.ripe {
			p.missed[page] = -1
		}
		t.pagesWanted <- pagesWanted{mod, p.ripe}
		p.ripe, p.lacked, p.asked = nil, 0, true
	}
	return nil
}

// takePages loads pages into the walker. After a failure no more are asked for: the walker scans
// there.
func (ps *Table) takePages(d pagesDone) error {
	u := d.module.unwind
	u.pages.asked = false
	if d.err != nil {
		ps.logs.Warn(fmt.Sprintf("compile call frame information of %s: %v; frames of its Haskell code are found without", d.module.Path, d.err))
		u.pages = nil
		return nil
	}
	for i := range d.pages {
		if err := ps.addPage(u, &d.pages[i]); err != nil {
			u.pages = nil // there is no room for more
			break
		}
	}
	return ps.renewRegions(d.module)
}

func (ps *Table) addPage(u *unwindTable, page *worker.UnwindPage) error {
	return ps.sampler.AddRows(u.Table, page.Rows, page.Number*cfi.PageBytes, cfi.PageBytes)
}

// renewRegions makes the walker look rules of a module up again.
func (ps *Table) renewRegions(mod *Module) error {
	for _, im := range ps.Images {
		if !im.Exited && im.maps(mod) {
			if err := ps.sampler.SetRegions(im.PID, im.regions()); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadPages loads a table's pages that the cache had.
func (ps *Table) loadPages(mod *Module, u *worker.UnwindTable) {
	p := &pages{table: mod.unwind, rows: u.Rows, missed: map[uint32]int{}}
	mod.unwind.pages = p
	ps.tables.withPages = append(ps.tables.withPages, mod)
	for i := range u.Pages {
		if ps.addPage(mod.unwind, &u.Pages[i]) != nil {
			mod.unwind.pages = nil
			return
		}
		p.missed[u.Pages[i].Number] = -1
	}
}
