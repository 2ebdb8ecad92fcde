package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"ccagent/agent/doctor"
	"ccagent/agent/invoker"
	"ccagent/internal/format"
	"ccagent/internal/printable"
	"ccagent/profile/diagnosis"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
)

func doctorCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "doctor [PROG|PID]",
		Short: "check this machine, and what a program will show; say how to mend what is amiss",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			report := doctorReport{Machine: doctor.Machine()}
			if len(args) == 1 {
				who, err := invoker.Find("")
				if err != nil {
					return err
				}
				// With root's rights doctor would say whether a file of another user is there.
				if err := who.WithFileRights(func() error { return report.examine(args[0]) }); err != nil {
					return err
				}
			}
			report.Healthy = doctor.Healthy(report.Machine) && doctor.Healthy(report.Program)
			if err := report.write(cmd.OutOrStdout(), format); err != nil {
				return err
			}
			if !report.Healthy {
				return exitStatus(1)
			}
			return nil
		},
	}
	formatFlag(cmd, &format)
	return cmd
}

// examine adds what a program, or the program of a process, will show.
func (r *doctorReport) examine(arg string) error {
	path, err := programPath(arg)
	if err != nil {
		return err
	}
	r.Path = arg
	r.Program, err = doctor.Program(path, func(packages []string) string { return diagnosis.NotesRemedy(packages...) })
	if pid, isPID := strconv.Atoi(arg); isPID == nil && path != arg {
		r.Program = doctor.Process(pid, r.Program)
	}
	return err
}

// programPath interprets an argument as a process id and returns its program, unless there
// is a file of that name.
func programPath(arg string) (string, error) {
	if _, err := os.Stat(arg); err == nil {
		return arg, nil
	}
	pid, err := strconv.Atoi(arg)
	if err != nil {
		return arg, nil
	}
	exe := fmt.Sprintf("/proc/%d/exe", pid)
	if _, err := os.Stat(exe); err != nil {
		return "", fmt.Errorf("doctor: there is no process %d, or it may not be examined; run it as root", pid)
	}
	return exe, nil
}

type doctorReport struct {
	Healthy bool           `json:"healthy"`
	Machine []doctor.Check `json:"machine"`
	Path    string         `json:"path,omitempty"`
	Program []doctor.Check `json:"program,omitempty"`
}

func (r *doctorReport) write(w io.Writer, format string) error {
	if format == "json" {
		return printable.JSON(w, r, "  ")
	}
	columns := 80
	if f, ok := stdout.Terminal(); ok {
		columns, _, _ = term.GetSize(f.Fd())
	}
	var b strings.Builder
	writeChecks(&b, columns, "this machine", r.Machine)
	if r.Program != nil {
		writeChecks(&b, columns, r.Path, r.Program)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeChecks writes checks in lines of at most columns, but for words that are longer.
func writeChecks(b *strings.Builder, columns int, title string, checks []doctor.Check) {
	hang := func(first, text string) {
		text = format.Fill(text, max(20, columns-len(first)))
		fmt.Fprintf(b, "%s%s\n", first, strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", len(first))))
	}
	fmt.Fprintf(b, "%s\n", printable.Line(title))
	for _, c := range checks {
		hang(fmt.Sprintf("  %-8s %-15s ", c.Status, c.Name), printable.Line(c.Detail))
		if c.Status == doctor.OK || c.Fix == "" {
			continue
		}
		for line := range strings.SplitSeq(c.Fix, "\n") {
			hang(fmt.Sprintf("  %-8s %-15s   ", "", ""), line)
		}
	}
}
