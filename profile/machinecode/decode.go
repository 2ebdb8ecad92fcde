package machinecode

import (
	"debug/elf"
	"fmt"
	"strings"

	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/x86/x86asm"
)

// Instruction is one instruction as it lies in memory.
type Instruction struct {
	Addr uint64
	Len  int
	Text string // in the syntax of GNU's tools; "(bad)" for bytes that are none
}

// Decode decodes code that begins with an instruction at an address. name gives what lies at an
// address that code refers to; it may be nil.
func Decode(arch elf.Machine, code []byte, addr uint64, name func(uint64) (string, uint64)) []Instruction {
	var out []Instruction
	for len(code) > 0 {
		in := Instruction{Addr: addr, Len: 1, Text: "(bad)"}
		if arch == elf.EM_AARCH64 {
			in.Len = 4
		}
		if in.Len > len(code) {
			return out
		}
		text, n := decode(arch, code, addr, name)
		if n > 0 && n <= len(code) {
			in.Len, in.Text = n, text
		}
		out = append(out, in)
		code, addr = code[in.Len:], addr+uint64(in.Len)
	}
	return out
}

// decode decodes one instruction; its length is 0 if there is none.
func decode(arch elf.Machine, code []byte, addr uint64, name func(uint64) (string, uint64)) (text string, n int) {
	defer func() { // printing an operand must never end the viewer
		if p := recover(); p != nil {
			text, n = fmt.Sprintf("(not decoded: %v)", p), 0
		}
	}()
	if arch == elf.EM_AARCH64 {
		in, err := arm64asm.Decode(code)
		if err != nil {
			return "", 0
		}
		return strings.TrimSpace(strings.ToLower(arm64asm.GNUSyntax(in))), 4
	}
	in, err := x86asm.Decode(code, 64)
	if err != nil {
		return "", 0
	}
	return x86asm.GNUSyntax(in, addr, name), in.Len
}
