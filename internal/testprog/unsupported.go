package testprog

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// UnsupportedError is what a test needs and this machine lacks.
type UnsupportedError struct {
	Need string // "ghc 9.0 or newer"
	Hint string // how to get it; may be empty
}

func (e *UnsupportedError) Error() string {
	if e.Hint == "" {
		return "unsupported: needs " + e.Need
	}
	return fmt.Sprintf("unsupported: needs %s (%s)", e.Need, e.Hint)
}

// Skip skips the test. It is the only way in which tests are skipped.
func Skip(tb testing.TB, e *UnsupportedError) {
	tb.Helper()
	tb.Skip(e.Error())
}

// NeedTool returns the path of an executable. The test is skipped if there is none; the hint
// is Debian's package of that name, or pkg.
func NeedTool(tb testing.TB, tool, pkg string) string {
	tb.Helper()
	path, err := exec.LookPath(tool)
	if err != nil {
		if pkg == "" {
			pkg = tool
		}
		Skip(tb, &UnsupportedError{Need: tool, Hint: "apt-get install " + pkg})
	}
	return path
}

// NeedRoot skips the test if it is not run by root.
func NeedRoot(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		Skip(tb, &UnsupportedError{Need: "root", Hint: "sudo ./scripts/test"})
	}
}
