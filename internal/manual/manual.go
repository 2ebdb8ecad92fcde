// Package manual writes manual pages of a command and its subcommands, generated from what their
// --help prints, and of the configuration file, generated from the commented file.
package manual

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// Command is a hidden command, "manual DIR", that writes the pages of its root command.
func Command(version string) *cobra.Command {
	var config string
	var date int64
	cmd := &cobra.Command{
		Use:    "manual DIR",
		Short:  "write manual pages into a folder",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at := time.Unix(date, 0).UTC()
			if config != "" {
				if err := writeConfig(config, args[0], version, at); err != nil {
					return err
				}
			}
			return writeCommands(cmd.Root(), args[0], version, at)
		},
	}
	cmd.Flags().StringVar(&config, "config", "", "also write the page of a configuration, from the commented `FILE`")
	cmd.Flags().Int64Var(&date, "date", time.Now().Unix(), "date the pages to so many `SECONDS` after 1970")
	return cmd
}

func writeCommands(root *cobra.Command, dir, version string, at time.Time) error {
	for _, c := range root.Commands() {
		if c.Name() == "completion" { // cobra's own
			root.RemoveCommand(c)
		}
	}
	root.DisableAutoGenTag = true
	prepare(root)
	header := &doc.GenManHeader{Section: "1", Date: &at, Source: root.Name() + " " + version, Manual: "ccagent"}
	err := doc.GenManTreeFromOpts(root, doc.GenManTreeOptions{Header: header, Path: dir, CommandSeparator: "-"})
	if err != nil {
		return fmt.Errorf("write manual pages: %w", err)
	}
	return nil
}

// prepare has the texts of commands read as markdown, which cobra takes them for.
func prepare(c *cobra.Command) {
	c.Long = markdown(c.Long)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		_, usage := pflag.UnquoteUsage(f)
		f.Usage = escaped.Replace(usage)
	})
	for _, child := range c.Commands() {
		prepare(child)
	}
}

var escaped = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, "`", "\\`", "[", `\[`)

// markdown turns a plain text into markdown: indented lines are literal, nothing else is markup.
func markdown(text string) string {
	var b strings.Builder
	literal := false
	for line := range strings.Lines(text) {
		indented := strings.HasPrefix(line, " ") || literal && strings.TrimSpace(line) == ""
		if indented != literal {
			b.WriteByte('\n')
		}
		if literal = indented; literal {
			b.WriteString("    " + line)
		} else {
			b.WriteString(escaped.Replace(line))
		}
	}
	return b.String()
}

func writeConfig(path, dir, version string, at time.Time) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("write the configuration's page: %w", err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%% \"CCAGENT.YAML\" \"5\" \"%s\" \"ccagent %s\" \"ccagent\"\n", at.Format("Jan 2006"), version)
	b.WriteString(`# NAME
ccagent.yaml \- configuration of ccagent

# SYNOPSIS
**/etc/ccagent/ccagent.yaml**

# DESCRIPTION
The file has all keys, with their defaults and comments that explain them:

`)
	for line := range strings.Lines(string(text)) {
		b.WriteString("    " + line)
	}
	b.WriteString(`

# SEE ALSO
**ccagent-daemon(1)**, **ccagent(1)**
`)
	if err := os.WriteFile(filepath.Join(dir, "ccagent.yaml.5"), md2man.Render(b.Bytes()), 0o644); err != nil {
		return fmt.Errorf("write the configuration's page: %w", err)
	}
	return nil
}

// Usage is a command's usage template with the help of flags in lines of 80 columns.
func Usage(c *cobra.Command) string {
	return strings.ReplaceAll(c.UsageTemplate(), ".FlagUsages ", ".FlagUsagesWrapped 80 ")
}
