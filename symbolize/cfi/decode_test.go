package cfi

import (
	"bufio"
	"encoding/hex"
	"os/exec"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// Every instruction of C libraries has the length that binutils gives it. They
// hold hand-written vector code beyond all that GHC generates.
func TestDecodeAgainstObjdump(t *testing.T) {
	objdump := testprog.NeedTool(t, "objdump", "binutils")
	for _, path := range systemLibraries(t) {
		cmd := exec.Command(objdump, "--disassemble", "--wide", "--insn-width=15", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		n, differ := 0, 0
		s := bufio.NewScanner(out)
		for s.Scan() {
			f := strings.Split(s.Text(), "\t")
			if len(f) < 3 || strings.Contains(f[2], "(bad)") || strings.HasPrefix(f[2], ".byte") {
				continue
			}
			b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(f[1]), " ", ""))
			// Binutils takes fwait for a part of the instruction after it.
			if err != nil || len(b) > 1 && b[0] == 0x9b {
				continue
			}
			n++
			if in, ok := decode(append(b, make([]byte, 15)...)); !ok || in.len != len(b) {
				if differ++; differ <= 5 {
					t.Errorf("%s: %d bytes, objdump has %d: %s", path, in.len, len(b), f[2])
				}
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		if differ > 5 || n < 1000 {
			t.Errorf("%s: %d of %d instructions differ", path, differ, n)
		}
	}
}

// An instruction that is cut off anywhere is not decoded.
func TestDecodeCutOff(t *testing.T) {
	// add $-8,%rbp; mov imm,disp(%rbp); vpshufb with SIB; jmp *table(,%rcx,8)
	for _, s := range []string{"4883c5f8", "48c745f8d8c54000", "c4e27100848b44332211", "ff24cd80c84c00"} {
		b, _ := hex.DecodeString(s)
		if in, ok := decode(b); !ok || in.len != len(b) {
			t.Errorf("%s: %d bytes, %v", s, in.len, ok)
		}
		for n := range b {
			if in, ok := decode(b[:n]); ok {
				t.Errorf("%s cut off after %d bytes is %d bytes", s, n, in.len)
			}
		}
	}
}
