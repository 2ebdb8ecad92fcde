package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"

	"ccagent/internal/printable"
	"ccagent/profile"
	"ccagent/ui/page"
	"ccagent/ui/printer"
	"ccagent/ui/text"

	"github.com/spf13/cobra"
)

func reportCommand(stdout, stderr *printable.Writer) *cobra.Command {
	v := &view{stdout: stdout, stderr: stderr}
	var out string
	c := &cobra.Command{
		Use:   "report FILE -o HTML",
		Short: "one page to send to somebody without this tool",
		Long: `One HTML file that shows a log, or what the flags keep of it, in a browser:
where the time is in a sentence, the hot list, a flame graph that zooms and
searches, source with its costs, activity and the heap over time, and all
accounting. It needs no network, and its browser is told to allow it none.

The page has the program's source, as far as the log has it, and the names and
arguments that ccview info prints: look at it before you send it.`,
		Args: exactly(1, "one log"),
		RunE: func(c *cobra.Command, args []string) error {
			if v.json() {
				return wrong("report is a page: leave out --format json")
			}
			if out == "" {
				return wrong("report needs a file to write: -o HTML, or -o - for stdout")
			}
			if _, ok := v.stdout.Terminal(); ok && out == "-" {
				return wrong("the page is for a browser and stdout a terminal: name a file with -o HTML")
			}
			s, _, err := v.selection(c, args[0])
			if err != nil {
				return err
			}
			all := []*profile.Selection{s}
			for _, other := range v.events(s) {
				if other != s {
					all = append(all, other)
				}
			}
			name := filepath.Base(args[0])
			var accounts bytes.Buffer
			if err := (text.Info{Profile: s.Profile}).Text(&accounts, printer.Options{File: name, Width: 120}); err != nil {
				return err
			}
			if err := v.writeTo(out, func(w io.Writer) error { return page.Write(w, name, accounts.String(), all) }); err != nil {
				return err
			}
			if out != "-" {
				fmt.Fprintf(v.stderr, "ccview: %s\n", out)
			}
			return nil
		},
	}
	v.addFlags(c)
	c.Flags().StringVarP(&out, "output", "o", "", "write to `HTML`; - is stdout")
	_ = c.Flags().MarkHidden("level")
	return c
}
