// Command ccagent profiles compiled Haskell programs, as they were shipped.
//
//	ccagent record [flags] -- PROG [ARG…]
//	ccagent attach [flags] PID
//	ccagent top [flags] PID | -- PROG [ARG…]
//	ccagent threads [flags] PID
//	ccagent heap [flags] PID
//	ccagent daemon [--config FILE] | ps | status | reload | boost PID | snapshot PID|SERVICE
//	ccagent events | doctor [PROG|PID] | symbolize FILE | version
//
// Its exit status is the program's own for record (128 and the signal's number
// if a signal ended it), 125 when ccagent itself failed, 126 when the program
// cannot be executed, and 127 when it is not found.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"ccagent/agent/retained"
	"ccagent/agent/target"
	"ccagent/internal/buildinfo"
	"ccagent/internal/format"
	"ccagent/internal/manual"
	"ccagent/internal/printable"
	"ccagent/internal/sandbox"
	"ccagent/symbolize/debuginfod"
	"ccagent/symbolize/worker"
)

const (
	exitFailed = 125
)

// exitStatus passes an exit status through cobra's error return; any message has already
// been printed.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

func main() {
	worker.Main() // does not return in a symbolising child
	debuginfod.Main()
	retained.Main()
	compatMain()
	convertMain()
	target.WithholdDescriptors()
	quitQuietly()
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	root := &cobra.Command{
		Use:   "ccagent",
		Short: "profile compiled Haskell programs as they were shipped",
		Long: `Profile compiled Haskell programs as they were shipped: without -prof, from the
outside. What was recorded is a log, which ccview shows.

  sudo ccagent record -o run.eventlog -- ./prog args…
  sudo ccagent attach --duration 10s PID
  sudo ccagent top PID
  ccview run.eventlog

Build with ghc -g3 to see source; ccagent doctor ./prog says what a program will
show, and how to mend what it will not.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("there is no command %q; ccagent --help lists them, and ccagent record -- %s runs and profiles a program", args[0], strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(recordCommand(), attachCommand(), topCommand(), heapCommand(), eventsCommand(), doctorCommand(), symbolizeCommand(), versionCommand(),
		daemonCommand(), psCommand(), statusCommand(), reloadCommand(), boostCommand(), snapshotCommand(), threadsCommand(), manual.Command(buildinfo.Version()))
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(manual.Usage(root))
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(context.Background())
	if why := sandbox.Incomplete(); why != "" {
		say("what hostile programs could take over was less confined than it should be: %s (ccagent's docs/confinement.md)", why)
	}
	var status exitStatus
	var start *target.StartError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &start):
		say("%v", err)
		return start.Status
	}
	say("%v", err)
	return exitFailed
}

// flagError says what is wrong with a flag, and where its help is.
func flagError(cmd *cobra.Command, err error) error {
	if strings.Contains(err.Error(), "missing unit in duration") {
		return fmt.Errorf("%w: give one, as in 5s or 200ms", err)
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// All output of ccagent goes through these writers, because names, paths and messages can
// come from a hostile program.
var stdout, stderr = printable.NewWriter(os.Stdout), printable.NewWriter(os.Stderr)

// say prints a message for the user; stdout belongs to the program.
func say(message string, args ...any) { sayTo(stderr, message, args...) }

// terminalColumns is the width of the terminal that w writes to; 0 if it is none.
func terminalColumns(w io.Writer) int {
	if p, ok := w.(*printable.Writer); ok {
		if f, ok := p.Terminal(); ok {
			width, _, _ := term.GetSize(f.Fd())
			return width
		}
	}
	return 0
}

// sayTo prints a message. Its further lines are indented, so that they cannot look like
// another message.
func sayTo(w io.Writer, message string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(message, args...), "\n")
	if width := terminalColumns(w); width > 0 {
		const prefix = 9 // "ccagent: "; the further lines have less
		text = format.Fill(text, max(20, width-prefix))
	}
	fmt.Fprintf(w, "ccagent: %s\n", strings.ReplaceAll(text, "\n", "\n  "))
}
