package main

import (
	"ccagent/internal/printable"
	"ccagent/profile"
	"ccagent/ui/printer"
	"ccagent/ui/screen/threads"
	"ccagent/ui/screen/tracks"

	"github.com/spf13/cobra"
)

func threadsCommand(stdout, stderr *printable.Writer) *cobra.Command {
	return ofRange("threads FILE", "what every Haskell thread does, and who waits for whom",
		`Of a dump that ccagent threads has written: every Haskell thread's state, what
it waits for and its stack; deadlocks, and who waits for whom.

Of any other log the Haskell threads that had samples, with their shares of the
CPU time and of the bytes allocated.`, stdout, stderr, func(*cobra.Command) {},
		func(p *profile.Profile, r profile.Range) (printer.Report, error) { return threadsReport(p, r), nil })
}

// threadsReport is a log's dump of threads, or the table of those that had samples.
func threadsReport(p *profile.Profile, r profile.Range) printer.Report {
	if len(p.Dumps) > 0 {
		return threads.Report{Profile: p}
	}
	return tracks.Table{Profile: p, Filter: profile.Filter{Range: r}}
}
