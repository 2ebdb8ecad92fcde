package elffile

import (
	"debug/elf"
	"testing"
)

// Symbols that only mark code and data on arm64 and RISC-V name no procedure.
func TestMappingSymbols(t *testing.T) {
	for _, c := range []struct {
		machine elf.Machine
		typ     elf.SymType
		bind    elf.SymBind
		name    string
		want    bool
	}{
		{elf.EM_AARCH64, elf.STT_NOTYPE, elf.STB_LOCAL, "$x", true},
		{elf.EM_AARCH64, elf.STT_NOTYPE, elf.STB_LOCAL, "$d", true},
		{elf.EM_AARCH64, elf.STT_NOTYPE, elf.STB_LOCAL, "$d.12", true},
		{elf.EM_AARCH64, elf.STT_NOTYPE, elf.STB_LOCAL, "$dynamic", false},
		{elf.EM_AARCH64, elf.STT_NOTYPE, elf.STB_LOCAL, "$", false},
		{elf.EM_AARCH64, elf.STT_FUNC, elf.STB_LOCAL, "$x", false},
		{elf.EM_AARCH64, elf.STT_NOTYPE, elf.STB_GLOBAL, "$x", false},
		{elf.EM_RISCV, elf.STT_NOTYPE, elf.STB_LOCAL, "$x", false},
		{elf.EM_X86_64, elf.STT_NOTYPE, elf.STB_LOCAL, "$x", false},
	} {
		f := &File{Machine: c.machine}
		if got := f.isMapping(&Symbol{Type: c.typ, Bind: c.bind}, c.name); got != c.want {
			t.Errorf("%v %v %v %q: %v", c.machine, c.typ, c.bind, c.name, got)
		}
	}
}
