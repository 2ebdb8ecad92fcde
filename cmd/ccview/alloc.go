package main

import (
	"ccagent/internal/printable"
	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/ui/printer"
	"ccagent/ui/screen/alloc"

	"github.com/spf13/cobra"
)

func allocCommand(stdout, stderr *printable.Writer) *cobra.Command {
	return ofRange("alloc FILE", "what was allocated, by closure",
		`What was allocated, by closure: constructors, thunks and functions with the
place they are written, and the run-time system's own objects.

It rests on blocks of the nursery that were copied when collections began, each
as likely as any other. What large objects hold is not in it. The event alloc
says which code allocated: ccview hot --event alloc.`, stdout, stderr, func(*cobra.Command) {},
		func(p *profile.Profile, f profile.Filter) (printer.Report, error) {
			of := closures.All
			of.Range = f.Range
			return alloc.Report{Profile: p, Filter: of}, nil
		})
}
