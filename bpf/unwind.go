package bpf

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
)

// Sizes of an encoded row and rule, as record.h declares them.
const (
	UnwindRowSize  = 8
	UnwindRuleSize = 32
	// MaxRegions bounds the mappings of a process that can be unwound.
	MaxRegions = 64
)

// ErrTableFull is returned when call frame information exceeds the room that
// Config.UnwindRows gave it.
var ErrTableFull = errors.New("no room for more call frame information")

// Table is the place of a module's call frame information in the walker's maps.
type Table struct {
	FirstRow, Rows, FirstRule uint32
}

// Region is a mapping of a module that has call frame information.
type Region struct {
	Start, End uint64 // run-time addresses
	Base       uint64 // run-time address that the table's rows count from
	Table      Table
}

// unwindTables fills the maps of rows and rules, which are shared memory.
type unwindTables struct {
	rows, rules         *ebpf.Memory
	nextRow, nextRule   uint32
	rowLimit, ruleLimit uint32
}

func newUnwindTables(maps *samplerMaps) (*unwindTables, error) {
	rows, err := maps.UnwindRows.Memory()
	if err != nil {
		return nil, fmt.Errorf("map unwind rows: %w", err)
	}
	rules, err := maps.UnwindRules.Memory()
	if err != nil {
		return nil, fmt.Errorf("map unwind rules: %w", err)
	}
	return &unwindTables{rows: rows, rules: rules,
		rowLimit: maps.UnwindRows.MaxEntries(), ruleLimit: maps.UnwindRules.MaxEntries()}, nil
}

// AddTable stores a module's rows, sorted, and its rules, both encoded as
// record.h declares them. The error is ErrTableFull if there is no room.
func (s *Sampler) AddTable(rows, rules []byte) (Table, error) {
	t := s.unwind
	n, m := uint32(len(rows)/UnwindRowSize), uint32(len(rules)/UnwindRuleSize)
	if n > t.rowLimit-t.nextRow || m > t.ruleLimit-t.nextRule {
		return Table{}, ErrTableFull
	}
	if err := errors.Join(
		writeAt(t.rows, rows, int64(t.nextRow)*UnwindRowSize),
		writeAt(t.rules, rules, int64(t.nextRule)*UnwindRuleSize)); err != nil {
		return Table{}, fmt.Errorf("store call frame information: %w", err)
	}
	table := Table{FirstRow: t.nextRow, Rows: n, FirstRule: t.nextRule}
	t.nextRow += n
	t.nextRule += m
	return table, nil
}

func writeAt(w io.WriterAt, b []byte, off int64) error {
	if len(b) == 0 {
		return nil
	}
	_, err := w.WriteAt(b, off)
	return err
}

// SetRegions says where a process has which tables; regions beyond MaxRegions
// are left out.
func (s *Sampler) SetRegions(pid uint32, regions []Region) error {
	var p samplerProcessRegions
	for i, r := range regions[:min(len(regions), MaxRegions)] {
		p.Regions[i].Start, p.Regions[i].End, p.Regions[i].Base = r.Start, r.End, r.Base
		p.Regions[i].FirstRow, p.Regions[i].RowCount, p.Regions[i].FirstRule = r.Table.FirstRow, r.Table.Rows, r.Table.FirstRule
		p.Count++
	}
	if err := s.maps.Regions.Put(pid, &p); err != nil {
		return fmt.Errorf("set code regions of process %d: %w", pid, err)
	}
	return nil
}
