// Command ccview shows what ccagent recorded.
//
//	ccview FILE                       the terminal viewer; if stdout is not a terminal, hot as text
//	ccview --follow FILE              the same for a log that is being written
//	ccview hot FILE                   elements by share
//	ccview source FILE PATH|BINDING   source with its costs
//	ccview stacks FILE                call tree
//	ccview ccs FILE                   cost centres, chosen after the run
//	ccview timeline FILE              activity over time
//	ccview chart FILE                 stacks over time, as they happened
//	ccview code FILE BINDING          a function's machine code, with its samples
//	ccview ls DIR                     the logs of a folder, by process
//	ccview info FILE                  metadata and all accounting
//	ccview doctor FILE                whether the log is complete, and how to get what is missing
//	ccview export --to FORMAT FILE    other tools' formats
//	ccview push --to ENGINE=URL FILE  a profiling engine
//	ccview heap FILE                  live heap data over time, by bands
//	ccview gc FILE                    pauses for garbage collection
//	ccview diff A B                   two logs, or two groups of logs, side by side
//
// FILE is a log of ccagent or of GHC's run-time system, complete or still being
// written, or another profiler's pprof profile or perf script text; or a folder of
// logs, which are shown as one.
//
// The exit status is 0 for success, 1 if the log cannot be read, and 2 for a wrong call.
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

// wrongCall is an error in the arguments; the exit status is 2.
type wrongCall struct{ err error }

func (e *wrongCall) Error() string { return e.err.Error() }
func (e *wrongCall) Unwrap() error { return e.err }

func wrong(format string, args ...any) error { return &wrongCall{fmt.Errorf(format, args...)} }

func main() {
	// A profile is a few large arrays without pointers: early garbage collections
	// cost little and keep peak memory for a large log near its size.
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
