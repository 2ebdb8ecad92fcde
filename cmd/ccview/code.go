package main

import (
	"errors"

	"ccagent/internal/printable"
	"ccagent/profile/machinecode"
	"ccagent/ui/screen/code"

	"github.com/spf13/cobra"
)

func codeCommand(stdout, stderr *printable.Writer) *cobra.Command {
	v := &view{stdout: stdout, stderr: stderr}
	var binary string
	var all bool
	c := &cobra.Command{
		Use:   "code FILE BINDING",
		Short: "a function's machine code, with its samples",
		Long: `The machine code whose samples a binding shares, or that is of the procedure or
linker's symbol of that name: each piece with the share of each instruction and
the source line of it.

A log holds addresses and no code: it is read from the program's file, if that
is the build that ran. Where the file is elsewhere, --binary says where; what
is missing is said, and the addresses that had samples are listed.`,
		Args: exactly(2, "a log and a binding"),
		RunE: func(c *cobra.Command, args []string) error {
			s, _, err := v.selection(c, args[0])
			if err != nil {
				return err
			}
			l, err := machinecode.Of(s, args[1], machinecode.OnDisk(binary))
			var lookup *machinecode.LookupError
			if errors.As(err, &lookup) {
				return &wrongCall{err}
			}
			if err != nil {
				return err
			}
			return v.print(code.Report{Listing: l, All: all}, args[0])
		},
	}
	v.addFlags(c)
	c.Flags().StringVar(&binary, "binary", "", "the program's file, where it is not where it was")
	c.Flags().BoolVar(&all, "all", false, "print every instruction, not only those near samples")
	return c
}
