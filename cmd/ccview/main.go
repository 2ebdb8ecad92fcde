// Command ccview shows what ccagent recorded.
//
//	ccview FILE                       the terminal viewer; hot as text where stdout is no terminal
//	ccview --follow FILE              the same of a log that is being written
//	ccview hot FILE                   elements by share
//	ccview source FILE PATH|BINDING   source with its costs
//	ccview stacks FILE                call tree
//	ccview ccs FILE                   cost centres, chosen after the run
//	ccview timeline FILE              activity over time
//	ccview info FILE                  metadata and all accounting
//	ccview doctor FILE                is the log whole; what is missing and what would bring it back
//	ccview export --to FORMAT FILE    other tools' formats
//	ccview heap FILE                  what was live over time, by bands
//	ccview gc FILE                    pauses for garbage collection
//	ccview diff A B                   two logs, or two groups of logs, side by side
//
// FILE is a log of ccagent or of GHC's run-time system, also one that is being
// written, or of another profiler a pprof profile or the text of perf script.
//
// Its exit status is 0; 1 when the log cannot be read; 2 for a wrong call.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"ccagent/internal/printable"
)

const (
	exitUnreadable = 1
	exitWrongCall  = 2
)

// wrongCall is an error of the one who calls.
type wrongCall struct{ err error }

func (e *wrongCall) Error() string { return e.err.Error() }
func (e *wrongCall) Unwrap() error { return e.err }

func wrong(format string, args ...any) error { return &wrongCall{fmt.Errorf(format, args...)} }

func main() {
	// A profile is a few large arrays without pointers: collecting garbage
	// early costs little and keeps a large log's peak near its size.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, out, diagnostics io.Writer) int {
	stdout, stderr := printable.NewWriter(out), printable.NewWriter(diagnostics)
	root := rootCommand(stdout, stderr)
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "ccview: %s\n", printable.Line(err.Error()))
	var wc *wrongCall
	if errors.As(err, &wc) {
		return exitWrongCall
	}
	return exitUnreadable
}
