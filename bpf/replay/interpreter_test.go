//go:build linux && cgo && amd64

package replay

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"ccagent/bpf/replay/oracle"
	"ccagent/bpf/replay/trace"
	"ccagent/internal/testprog"
)

// Stacks with bytecode below compiled code are walked; the frames of GHC's interpreter are
// RET_BCO.
func TestInterpreter(t *testing.T) {
	_, version := testprog.GHC(t, "")
	out, err := exec.Command("ghc", "--print-libdir").Output()
	if err != nil {
		t.Fatal(err)
	}
	libdir := strings.TrimSpace(string(out))
	var ghc string
	for _, p := range []string{filepath.Join(libdir, "bin", "ghc"), filepath.Join(libdir, "..", "bin", "ghc")} {
		if _, err := os.Stat(p); err == nil {
			ghc = p
			break
		}
	}
	if ghc == "" {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "a GHC whose program is bin/ghc by its library folder"})
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const expression = "let f :: Int -> Int; f 0 = 0; f n = case f (n - 1) of { r -> r `seq` (n + r) } in print (f 300)"
	p, err := StartProcess(ghc, []string{"-B" + libdir, "-ignore-dot-ghci", "-e", expression}, Build{GHC: version, Threaded: true}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	// Bytecode calls Int's (-) once a level, below the frames of f.
	at := p.Program.Lookup("base_GHCziNum_zdfNumIntzuzdczm_info")
	if at == 0 {
		t.Fatal("Int's (-) has no symbol")
	}
	tables := tablesOf(t, p.Program)
	bytecode := 0
	for range 200 {
		tid, err := p.RunTo(at, 20)
		if errors.Is(err, trace.ErrExited) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		truth, registers, err := p.Truth(tid)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range truth.Frames {
			if f.Kind == "ret_bco" {
				bytecode++
			}
		}
		c := &comparer{t: t, p: p, tid: tid, tables: tables, wrong: map[oracle.Top]int{}}
		c.compare(t, truth, registers)
	}
	if bytecode < 100 {
		t.Errorf("only %d frames of bytecode were seen", bytecode)
	}
}
