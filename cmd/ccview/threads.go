package main

import (
	"ccagent/internal/printable"
	"ccagent/profile"
	"ccagent/ui/printer"
	"ccagent/ui/screen/threads"

	"github.com/spf13/cobra"
)

func threadsCommand(stdout, stderr *printable.Writer) *cobra.Command {
	return ofRange("threads FILE", "what every Haskell thread does, and who waits for whom",
		`Of a dump that ccagent threads has written: every Haskell thread's state, what it
waits for and its stack; deadlocks, and who waits for whom.`, stdout, stderr, func(*cobra.Command) {},
		func(p *profile.Profile, _ profile.Range) (printer.Report, error) {
			return threads.Report{Profile: p}, nil
		})
}
