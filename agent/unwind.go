package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"ccagent/bpf"
	"ccagent/symbolize/cfi"
	"ccagent/symbolize/elffile"
)

// unwindTable is a module's call frame information in the walker's maps.
type unwindTable struct {
	bpf.Table
	base uint64 // module address that rows count from
}

// unwindRowsFor guesses the room for the call frame information of a program
// and of its libraries: real programs have a row for every twenty bytes or
// more of file, the usual C libraries a quarter of a million together.
func unwindRowsFor(programSize int64) int {
	const libraries, most = 1 << 20, 16 << 20
	return int(min(programSize/16+libraries, most))
}

// compiled is a module's call frame information, encoded for the walker.
type compiled struct {
	module      *module
	base        uint64
	rows, rules []byte
	err         error
}

// tables compiles call frame information beside the capture: a large program's
// takes seconds, and meanwhile its stacks are walked without.
type tables struct {
	done    chan compiled
	pending int
}

// maxCompiling bounds the modules that wait to be compiled or taken.
const maxCompiling = maxModules

func newTables() *tables { return &tables{done: make(chan compiled, maxCompiling)} }

// compile begins with a module, whose file must stay open until it is done.
func (t *tables) compile(mod *module) {
	if mod.file == nil || mod.why != nil || t.pending >= maxCompiling {
		return
	}
	t.pending++
	go func() { t.done <- compileTable(mod) }()
}

// compileTable reads a module's call frame information. Without any, there are
// no rows.
func compileTable(mod *module) compiled {
	c := compiled{module: mod}
	info, err := mod.file.Stat()
	if err != nil {
		c.err = fmt.Errorf("examine module %s: %w", mod.path, err)
		return c
	}
	f, err := elffile.Open(mod.file, info.Size())
	if err != nil {
		c.err = fmt.Errorf("examine module %s: %w", mod.path, err)
		return c
	}
	table, err := cfi.Compile(f, cfi.DefaultLimits)
	if errors.Is(err, cfi.ErrNone) {
		return c
	}
	if err != nil {
		c.err = fmt.Errorf("compile call frame information of %s: %w", mod.path, err)
		return c
	}
	c.base = table.Base
	c.rows = make([]byte, 0, len(table.Rows)*cfi.RowSize)
	for _, r := range table.Rows {
		c.rows = r.Append(c.rows)
	}
	c.rules = make([]byte, 0, len(table.Rules)*cfi.RuleSize)
	for i := range table.Rules {
		c.rules = table.Rules[i].Append(c.rules)
	}
	return c
}

// takeTables gives the walker what has been compiled meanwhile, waiting for
// more until patience is over.
func (ps *processes) takeTables(patience time.Duration) error {
	over := time.After(patience)
	for ps.tables.pending > 0 {
		var c compiled
		select {
		case c = <-ps.tables.done:
		default:
			select {
			case c = <-ps.tables.done:
			case <-over:
				return nil
			}
		}
		ps.tables.pending--
		if err := ps.takeTable(c); err != nil {
			return err
		}
	}
	return nil
}

func (ps *processes) takeTable(c compiled) error {
	if c.err == nil && len(c.rows) > 0 {
		var stored bpf.Table
		if stored, c.err = ps.sampler.AddTable(c.rows, c.rules); c.err == nil {
			c.module.unwind = &unwindTable{Table: stored, base: c.base}
		}
	}
	if c.err != nil {
		ps.warn(fmt.Sprintf("%v; its C code will not be unwound", c.err))
		return nil
	}
	for _, im := range ps.images {
		if im.maps(c.module) {
			if err := ps.tellWalker(im); err != nil {
				return err
			}
		}
	}
	return nil
}

// maps reports whether the image has the module mapped.
func (im *image) maps(mod *module) bool {
	return slices.ContainsFunc(im.mappings, func(m mapping) bool { return m.module == mod })
}

// regions lists where the image has call frame information, its program first:
// that is where most samples are.
func (im *image) regions() []bpf.Region {
	var regions []bpf.Region
	add := func(exe bool) {
		for _, m := range im.mappings {
			if t := m.module.unwind; t != nil && (m.module == im.exe) == exe {
				regions = append(regions, bpf.Region{Start: m.start, End: m.end, Base: m.bias + t.base, Table: t.Table})
			}
		}
	}
	add(true)
	add(false)
	return regions
}
