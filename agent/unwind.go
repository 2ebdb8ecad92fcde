package agent

import (
	"errors"
	"fmt"

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

// addTable compiles a module's call frame information and gives it to the
// walker. A module without any is no error: its table stays nil.
func (mod *module) addTable(s *bpf.Sampler) error {
	if mod.file == nil || mod.why != nil {
		return nil
	}
	info, err := mod.file.Stat()
	if err != nil {
		return fmt.Errorf("examine module %s: %w", mod.path, err)
	}
	f, err := elffile.Open(mod.file, info.Size())
	if err != nil {
		return fmt.Errorf("examine module %s: %w", mod.path, err)
	}
	table, err := cfi.Compile(f, cfi.DefaultLimits)
	if errors.Is(err, cfi.ErrNone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("compile call frame information of %s: %w", mod.path, err)
	}
	rows := make([]byte, 0, len(table.Rows)*cfi.RowSize)
	for _, r := range table.Rows {
		rows = r.Append(rows)
	}
	rules := make([]byte, 0, len(table.Rules)*cfi.RuleSize)
	for i := range table.Rules {
		rules = table.Rules[i].Append(rules)
	}
	stored, err := s.AddTable(rows, rules)
	if err != nil {
		return fmt.Errorf("compile call frame information of %s: %w", mod.path, err)
	}
	mod.unwind = &unwindTable{Table: stored, base: table.Base}
	return nil
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
