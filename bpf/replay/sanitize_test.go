//go:build linux && cgo

package replay

import (
	"bytes"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/bpf"
	"ccagent/internal/testprog"
)

// The walker compiled with sanitizers, for addresses and undefined behaviour, gives the same
// records as the other build for whole and damaged snapshots, and the sanitizers report
// nothing.
func TestSanitized(t *testing.T) {
	gcc := testprog.NeedTool(t, "gcc", "")
	driver := filepath.Join(t.TempDir(), "driver")
	build := exec.Command(gcc, "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-static-libasan", "-g", "-O1",
		"-Wall", "-Wno-unused-variable", "-Wno-unknown-pragmas", "-I.", "-I../c", "-o", driver,
		"sanitize/driver.c", "memory.c", "x86regs.c", "arm64regs.c")
	if out, err := build.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "asan") && strings.Contains(string(out), "cannot find") {
			testprog.Skip(t, &testprog.UnsupportedError{Need: "gcc's sanitizers", Hint: "apt-get install libgcc-12-dev"})
		}
		t.Fatalf("compile driver: %v\n%s", err, out)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var input, want bytes.Buffer
	for _, name := range snapshots(t) {
		whole := FromSnapshot(readSnapshot(t, name), SnapshotFrames)
		for n := range 8 {
			target := whole
			if n > 0 {
				program := make([]byte, 4*n*n)
				for i := range program {
					program[i] = byte(random.Uint32())
				}
				target = mutate(whole, program)
				target.MaxFrames = 1 + random.IntN(bpf.MaxLeafFrames)
			}
			r, err := Walk(target)
			if err != nil {
				t.Fatal(err)
			}
			check(t, &r, target.MaxFrames)
			input.Write(target.Flat())
			want.Write(FlatRecord(&r))
		}
	}
	run := exec.Command(driver)
	run.Stdin = &input
	var stderr strings.Builder
	run.Stderr = &stderr
	got, err := run.Output()
	if err != nil {
		t.Fatalf("sanitized walker: %v\n%s", err, stderr.String())
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("the sanitized build's records differ: %d bytes of them, want %d", len(got), want.Len())
	}
}
