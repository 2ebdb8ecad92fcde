package search

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"os"
	"testing"

	"ccagent/internal/testprog"
	"ccagent/symbolize/elffile"
)

// Symbols show which constructors KiCS2 has added, and which code does nothing but make their values.
func TestSymbols(t *testing.T) {
	for _, c := range []struct {
		symbol             string
		constructor, alone bool
	}{
		{"CurryzuPrelude_ChoicezuCzuBool_con_info", true, false},
		{"pkgzm1zi0_CurryzuPrelude_GuardzuOPzuList_con_info", true, false},
		{"CurryzuPrelude_ChoicezuCzuBool_info", false, true},
		{"CurryzuPrelude_ChoicezuCzuBool_closure", false, false},
		{"CurryzuPrelude_CzuTrue_con_info", false, false},
		{"Types_Choice_con_info", false, false},
		{"CurryzuPrelude_Failzu_con_info", false, false},
		{"CurryzuPrelude_zdfNonDetCzuBoolzuzdcchoiceCons_info", false, true},
		{"CurryzuPrelude_zdfNonDetCzuBoolzuzdctry_info", false, false},
		{"CurryzuPrelude_dzuCzunot_info", false, false},
		{"_con_info", false, false},
		{"", false, false},
	} {
		if constructor(c.symbol) != c.constructor || makesAlone(c.symbol) != c.alone {
			t.Errorf("%s: constructor %v, alone %v", c.symbol, constructor(c.symbol), makesAlone(c.symbol))
		}
	}
}

// An instruction that writes an info table's address into the heap begins where the processor's manual says; of others nothing is claimed.
func TestBegins(t *testing.T) {
	for _, c := range []struct {
		what string
		b    []byte
		want int
	}{
		{"mov $, (%r12)", []byte{0x90, 0x49, 0xc7, 0x04, 0x24}, 4},
		{"mov $, -32(%r12)", []byte{0x90, 0x49, 0xc7, 0x44, 0x24, 0xe0}, 5},
		{"mov $, -512(%r12)", []byte{0x49, 0xc7, 0x84, 0x24, 0, 0xfe, 0xff, 0xff}, 8},
		{"lea (%rip), %rax", []byte{0x90, 0x48, 0x8d, 0x05}, 3},
		{"lea (%rip), %r10", []byte{0x4c, 0x8d, 0x15}, 3},
		{"mov $, -32(%rbp)", []byte{0x48, 0xc7, 0x45, 0xe0}, 0},
		{"mov $, -32(%rsp)", []byte{0x48, 0xc7, 0x44, 0x24, 0xe0}, 0},
		{"mov $, %ebx", []byte{0x90, 0xbb}, 0},
		{"jmp", []byte{0xe9}, 0},
		{"nothing", nil, 0},
	} {
		if got := begins(c.b); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}

// In the test program all that refers to such constructors is known, and in code; the constructors' own functions and methods do nothing else.
func TestPlaces(t *testing.T) {
	for name, o := range map[string]testprog.Options{"position-dependent": {}, "-fPIC": {Flags: []string{"-fPIC"}}} {
		b, err := os.ReadFile(testprog.Build(t, "curry", o))
		if err != nil {
			t.Fatal(err)
		}
		f, err := elffile.Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		p, err := findPlaces(context.Background(), f)
		if err != nil {
			t.Fatal(err)
		}
		alone := 0
		for _, at := range p.at {
			if at.alone {
				alone++
			}
			if !f.Executable(at.addr) {
				t.Errorf("%s: %#x is no code", name, at.addr)
			}
		}
		// Three types have four constructors; each has a function and a method, which GHC may have made one.
		if p.unknown > 0 || len(p.at) < 40 || alone < 12 || alone > 24 {
			t.Errorf("%s: %d places, %d of them alone, %d unknown", name, len(p.at), alone, p.unknown)
		}
	}
}

// crafted is a small file with one segment of code that has such a constructor's address, with its symbol.
func crafted(code []byte) []byte {
	var out bytes.Buffer
	const header, program, section, at = 64, 56, 64, 0x400000
	strings := "\x00CurryzuP_ChoicezuCzuB_con_info\x00"
	codeAt := uint64(header + program)
	symbolsAt := codeAt + uint64(len(code))
	stringsAt := symbolsAt + 2*24
	sectionsAt := stringsAt + uint64(len(strings))
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: header, Shoff: sectionsAt, Ehsize: header, Phentsize: program, Phnum: 1, Shentsize: section, Shnum: 3}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	symbols := []elf.Sym64{{}, {Name: 1, Info: 2, Shndx: uint16(elf.SHN_ABS), Value: at + 0x10}}
	for _, part := range []any{
		h, elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_X | elf.PF_R), Off: codeAt, Vaddr: at, Filesz: uint64(len(code)), Memsz: uint64(len(code))},
		code, symbols, []byte(strings),
		[]elf.Section64{{}, {Type: uint32(elf.SHT_SYMTAB), Off: symbolsAt, Size: 2 * 24, Link: 2, Entsize: 24}, {Type: uint32(elf.SHT_STRTAB), Off: stringsAt, Size: uint64(len(strings))}},
	} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			panic(err)
		}
	}
	return out.Bytes()
}

// Of whatever file the places are in its code, or there is an error, never both.
func FuzzPlaces(f *testing.F) {
	info := []byte{0x10, 0, 0x40, 0}
	f.Add(crafted(append([]byte{0x90, 0x90, 0x90, 0x49, 0xc7, 0x44, 0x24, 0xe0}, info...)))
	f.Add(crafted(append([]byte{0xe0}, info...)))
	f.Add(crafted(info))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := elffile.Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		p, err := findPlaces(context.Background(), file)
		if (p == nil) == (err == nil) {
			t.Fatalf("%v and %v", p, err)
		}
		if p != nil && (len(p.at) == 0 || len(p.at) > maxPlaces) {
			t.Fatalf("%d places", len(p.at))
		}
	})
}
