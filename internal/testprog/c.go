package testprog

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// CompileC compiles a program in C, or what the flags make of it, in a folder of the test. The
// test is skipped where there is no gcc.
func CompileC(tb testing.TB, text string, flags ...string) (exe string) {
	tb.Helper()
	dir := tb.TempDir()
	source, exe := filepath.Join(dir, "program.c"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	if out, err := exec.Command(NeedTool(tb, "gcc", "gcc"), append(flags, "-o", exe, source)...).CombinedOutput(); err != nil {
		tb.Fatalf("gcc %q: %v\n%s", flags, err, out)
	}
	return exe
}
