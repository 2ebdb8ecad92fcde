package testprog

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// UnsupportedError says what a test needs and this machine lacks.
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

// Skip ends the test as skipped. Tests skip for no other reason than this one.
func Skip(tb testing.TB, e *UnsupportedError) {
	tb.Helper()
	tb.Skip(e.Error())
}

// NeedTool gives the path of an executable, and skips the test without it. Debian's
// package of the same name is the hint unless pkg names another.
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

// NeedRoot skips the test for any other user.
func NeedRoot(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		Skip(tb, &UnsupportedError{Need: "root", Hint: "sudo ./scripts/test"})
	}
}
