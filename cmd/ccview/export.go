package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ccagent/internal/buildinfo"
	"ccagent/internal/printable"
	"ccagent/profile"
	"ccagent/profile/export"

	"github.com/spf13/cobra"
)

func exportCommand(stdout, stderr *printable.Writer) *cobra.Command {
	v := &view{stdout: stdout, stderr: stderr}
	var to, out, compat string
	o := export.Options{Program: "ccview " + buildinfo.Version()}
	c := &cobra.Command{
		Use:   "export --to FORMAT -o OUT FILE",
		Short: "other tools' formats",
		Long: `Writes a log, or what the flags keep of it, for other tools:

  pprof        go tool pprof; a sample type for each event, the causes of a
               frame as inlined functions, labels thread, capability, category
  speedscope   speedscope.app; a profile for each thread, or --merged
  folded       flame graph scripts; with --causes the leaf's causes as NAME_[i]
  firefox      profiler.firefox.com
  perf-script  what reads the text of perf script

  eventlog     a log again: cut by --range or any other filter, or several logs
               merged: those of one run's pieces, or the run-time system's own
               of the same run, aligned by wall clock and process

Without --event, formats that hold several events get all of them, the others
the log's first.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return wrong("export takes a log, or with --to eventlog several; see ccview export --help")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if to == eventlogFormat {
				return v.rewrite(c, args, out, compat)
			}
			if len(args) > 1 {
				return wrong("only --to eventlog takes several logs")
			}
			if compat != "" {
				return wrong("--compat is for --to eventlog")
			}
			f, err := exportFormat(to)
			if err != nil {
				return err
			}
			if v.json() {
				return wrong("export has formats of its own: leave out --format json")
			}
			if err := v.notOnTerminal(f.Binary, out, to); err != nil {
				return err
			}
			ss, level, err := v.selections(c, args[0], f.Events)
			if err != nil {
				return err
			}
			o.Level = level
			return v.writeTo(out, func(w io.Writer) error { return f.Write(w, ss, o) })
		},
	}
	v.addFlags(c)
	c.Flags().StringVar(&to, "to", "", "the `FORMAT`: "+formatNames())
	c.Flags().StringVarP(&out, "output", "o", "-", "write to `OUT`; - is stdout")
	c.Flags().BoolVar(&o.Causes, "causes", false, "folded: the leaf's causes at --level as frames NAME_[i]")
	c.Flags().BoolVar(&o.Merged, "merged", false, "speedscope: all threads in one profile")
	c.Flags().StringVar(&compat, "compat", "", "eventlog: add the standard events that `TOOL` looks for: "+strings.Join(compatNames(), ", "))
	return c
}

// formatNames returns the list of formats for help and errors.
func formatNames() string {
	var names []string
	for i := range export.Formats {
		names = append(names, export.Formats[i].Name)
	}
	return strings.Join(append(names, eventlogFormat), ", ")
}

func exportFormat(name string) (*export.Format, error) {
	for i := range export.Formats {
		if export.Formats[i].Name == name {
			return &export.Formats[i], nil
		}
	}
	if name == "" {
		return nil, wrong("export needs --to FORMAT: %s", formatNames())
	}
	return nil, wrong("unknown format %q: choose %s", name, formatNames())
}

// notOnTerminal returns an error if binary data would be written to a terminal.
func (v *view) notOnTerminal(binary bool, out, to string) error {
	if _, ok := v.stdout.Terminal(); ok && binary && out == "-" {
		return wrong("%s is a binary format and stdout a terminal: name a file with -o OUT", to)
	}
	return nil
}

// selections returns a selection for each event to export, filtered by the flags.
func (v *view) selections(c *cobra.Command, path string, all bool) ([]*profile.Selection, profile.Level, error) {
	s, level, err := v.selection(c, path)
	if err != nil {
		return nil, 0, err
	}
	p := s.Profile
	switch {
	case p.Samples() == 0:
		return nil, 0, fmt.Errorf("%s has no samples to export", path)
	case s.Samples == 0 && (v.event != "" || !all):
		return nil, 0, wrong("the flags keep none of the samples of %s", path)
	case v.event != "" || !all:
		return []*profile.Selection{s}, level, nil
	}
	ss := v.events(s)
	if len(ss) == 1 && s.Samples == 0 {
		return nil, 0, wrong("the flags keep none of the samples of %s", path)
	}
	return ss, level, nil
}

// events returns a selection and, unless --event chose one, those of the log's other events that
// have samples.
func (v *view) events(s *profile.Selection) []*profile.Selection {
	if v.event != "" {
		return []*profile.Selection{s}
	}
	var ss []*profile.Selection
	p := s.Profile
	for i := range p.Events {
		if i == s.Event {
			ss = append(ss, s)
			continue
		}
		if p.Events[i].Samples == 0 {
			continue
		}
		if other := p.Select(s.Filter.WithEvent(i)); other.Samples > 0 {
			ss = append(ss, other)
		}
	}
	return ss
}

// writeTo calls write for a temporary file and renames it to out when it is complete, so
// that out never has partial content. If out is not a regular file, it is written directly.
func (v *view) writeTo(out string, write func(io.Writer) error) error {
	if out == "-" {
		return write(v.stdout.Data())
	}
	if st, err := os.Stat(out); err == nil && !st.Mode().IsRegular() {
		f, err := os.OpenFile(out, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("%w; name another place with -o", err)
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(out), "."+filepath.Base(out)+".*")
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err // without the path, which is the temporary file's
		}
		return fmt.Errorf("write %s: %w; name another place with -o", out, err)
	}
	err = write(f)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), out)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
