package main

import (
	"math"

	"ccagent/internal/printable"
	"ccagent/ui/screen/chart"

	"github.com/spf13/cobra"
)

func chartCommand(stdout, stderr *printable.Writer) *cobra.Command {
	v := &view{stdout: stdout, stderr: stderr}
	columns := 0
	c := &cobra.Command{
		Use:   "chart FILE",
		Short: "stacks over time, as they happened",
		Long: `Stacks over time: in each of equal columns of time the frames that at least
half of the samples had, and from when to when they stayed the same. Where
several threads run at once, --thread shows one of them.`,
		Args: exactly(1, "one log"),
		RunE: func(c *cobra.Command, args []string) error {
			if columns < 0 || columns > math.MaxUint16 {
				return wrong("--buckets %d: from 1 to %d", columns, math.MaxUint16)
			}
			s, _, err := v.selection(c, args[0])
			if err != nil {
				return err
			}
			return v.print(chart.Report{Selection: s, Columns: columns}, args[0])
		},
	}
	v.addFlags(c)
	c.Flags().IntVar(&columns, "buckets", 0, "columns of time (default 100)")
	return c
}
