package main

import (
	"ccagent/internal/printable"
	"ccagent/profile"
	"ccagent/ui/printer"
	"ccagent/ui/screen/dump"
	"ccagent/ui/screen/threads"

	"github.com/spf13/cobra"
)

func threadsCommand(stdout, stderr *printable.Writer) *cobra.Command {
	return ofRange("threads FILE", "what every Haskell thread does, and who waits for whom",
		`Of a dump that ccagent threads has written: every Haskell thread's state, what
it waits for and its stack; deadlocks, and who waits for whom.

Of any other log the Haskell threads that had samples, with their shares of the
CPU time and of the bytes allocated.

With --thread, the rows of those threads only; shares are of all threads.`, stdout, stderr, func(*cobra.Command) {},
		func(p *profile.Profile, f profile.Filter) (printer.Report, error) { return threadsReport(p, f), nil }, "thread")
}

// threadsReport is a log's thread dump, or the table of the threads that had samples. Of the filter
// the range and the threads hold.
func threadsReport(p *profile.Profile, f profile.Filter) printer.Report {
	if len(p.Dumps) > 0 {
		return dump.Report{Profile: p, Only: f.Threads}
	}
	return threads.Table{Profile: p, Filter: profile.Filter{Range: f.Range}, Only: f.Threads}
}
