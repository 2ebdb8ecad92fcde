package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"maps"
	"os"
	"testing"

	"ccagent/internal/testprog"
)

// Imports are what debug/elf reads from the same tables.
func TestEachImport(t *testing.T) {
	exe, err := os.ReadFile("/bin/bash")
	if err != nil {
		testprog.Skip(t, &testprog.UnsupportedError{Need: err.Error()})
	}
	theirs, err := elf.NewFile(bytes.NewReader(exe))
	if err != nil {
		t.Fatal(err)
	}
	table := theirs.Section(".rela.dyn")
	if theirs.Machine != elf.EM_X86_64 || table == nil {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "a dynamically linked /bin/bash for x86-64"})
	}
	symbols, err := theirs.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	data, err := table.Data()
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint64]string{}
	for ; len(data) >= 24; data = data[24:] {
		if info := binary.LittleEndian.Uint64(data[8:]); elf.R_X86_64(uint32(info)) == elf.R_X86_64_GLOB_DAT {
			want[binary.LittleEndian.Uint64(data)] = symbols[info>>32-1].Name // without the null symbol
		}
	}
	ours, err := Open(bytes.NewReader(exe), int64(len(exe)))
	if err != nil {
		t.Fatal(err)
	}
	got := map[uint64]string{}
	if err := ours.EachImport(uint32(elf.R_X86_64_GLOB_DAT), 1<<24, func(slot uint64, name string) { got[slot] = name }); err != nil {
		t.Fatal(err)
	}
	if len(want) == 0 || !maps.Equal(got, want) {
		t.Errorf("imports %v, want %v", got, want)
	}
	if err := ours.EachImport(uint32(elf.R_X86_64_GLOB_DAT), 64, func(uint64, string) {}); err == nil {
		t.Error("tables beyond the limit are read")
	}
}
