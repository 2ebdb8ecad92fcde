package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"ccagent/internal/printable"

	"github.com/spf13/cobra"
)

// The help of every command fits 80 columns, and no flag has an empty default.
func TestHelpFits(t *testing.T) {
	discard := printable.NewWriter(io.Discard)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		var out bytes.Buffer
		c.SetOut(&out)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("%s: %d columns: %s", c.CommandPath(), n, line)
			}
			if strings.Contains(line, "(default )") {
				t.Errorf("%s: %s", c.CommandPath(), line)
			}
		}
		for _, sub := range c.Commands() {
			if sub.Name() != "completion" && sub.Name() != "help" { // the library's own
				walk(sub)
			}
		}
	}
	walk(rootCommand(discard, discard))
}
