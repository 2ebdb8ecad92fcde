package testprog

import (
	"io"
	"os/exec"
	"testing"
)

// Start starts a command whose input the test writes and whose output it reads. How the command ends is the caller's concern.
func Start(tb testing.TB, cmd *exec.Cmd) (in io.WriteCloser, out io.ReadCloser) {
	tb.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err = cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	return in, out
}
