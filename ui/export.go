package ui

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"ccagent/ui/printer"
	"ccagent/ui/screen"

	tea "charm.land/bubbletea/v2"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/export"
	"ccagent/ui/model"
)

// exportHint lists the file name endings and what they select.
func exportHint() string {
	hint := ".txt .json: this screen; .folded .pprof .speedscope.json .firefox.json .perf"
	for i := range kinds {
		if k := &kinds[i]; len(k.Endings) > 0 {
			hint += "; of " + strings.ToLower(k.Keys.Section.Group) + " " + strings.Join(k.Endings, " ")
		}
	}
	return hint
}

// endings are those of other tools' formats, longest first.
var endings = []struct{ end, format string }{
	{".speedscope.json", "speedscope"}, {".firefox.json", "firefox"}, {".pb.gz", "pprof"}, {".pprof", "pprof"}, {".folded", "folded"},
	{".perf", "perf-script"},
}

type exportedMsg struct {
	path string
	size int
	err  error
}

// message says that the file is written, or why not.
func (m exportedMsg) message() message {
	if m.err != nil {
		return message{"export: " + m.err.Error(), true}
	}
	return message{text: fmt.Sprintf("%s: %s written", m.path, format.Bytes(uint64(m.size)))}
}

// exporter writes what is shown of a log into files.
type exporter struct {
	log   string // its name
	kind  *screen.Kind
	shown screen.Screen
}

// suggested is the file name that the prompt suggests.
func (x exporter) suggested() string {
	return strings.TrimSuffix(x.log, filepath.Ext(x.log)) + "." + x.kind.Name + ".txt"
}

// check checks a file name.
func (x exporter) check(path string) error {
	_, err := x.writerFor(path)
	return err
}

// write writes what the transforms keep into a new file, beside the event loop.
func (x exporter) write(c *screen.Context, path string) (message, tea.Cmd) {
	write, err := x.writerFor(path)
	if err != nil {
		return message{"export: " + err.Error(), true}, nil
	}
	p, event, ts := c.Profile, c.Event, c.Applied.All()
	return message{}, func() tea.Msg {
		f, err := model.Filter(event, ts)
		if err != nil {
			return exportedMsg{err: err}
		}
		var b bytes.Buffer
		if err := write(&b, p.Select(f)); err != nil {
			return exportedMsg{err: err}
		}
		return exportedMsg{path, b.Len(), screen.WriteNew(path, b.Bytes())}
	}
}

type writer = func(io.Writer, *profile.Selection) error

// writerFor returns the writer for a file name's ending.
func (x exporter) writerFor(path string) (writer, error) {
	name := strings.ToLower(filepath.Base(path))
	for _, e := range endings {
		if strings.HasSuffix(name, e.end) {
			return otherTool(e.format), nil
		}
	}
	ext := filepath.Ext(name)
	switch ext {
	case ".txt", ".json":
		return x.twin(ext == ".json")
	}
	for i := range kinds {
		k := &kinds[i]
		if !slices.Contains(k.Endings, ext) {
			continue
		}
		if s, ok := x.shown.(screen.Exporter); ok && k == x.kind {
			return s.Export(ext), nil
		}
		return nil, fmt.Errorf("%s files are of %s; %s shows them", ext, strings.ToLower(k.Keys.Section.Group), screenKey(k.Name))
	}
	return nil, fmt.Errorf("the ending chooses the format: %s", exportHint())
}

func otherTool(format string) writer {
	return func(w io.Writer, s *profile.Selection) error {
		for i := range export.Formats {
			if f := &export.Formats[i]; f.Name == format {
				return f.Write(w, []*profile.Selection{s}, export.Options{Program: "ccview"})
			}
		}
		return fmt.Errorf("unknown format %q", format)
	}
}

// twin prints the report of the screen that is shown.
func (x exporter) twin(json bool) (writer, error) {
	report, err := x.shown.Report()
	if err != nil {
		return nil, err
	}
	o := printer.Options{File: x.log, Top: -1}
	return func(w io.Writer, s *profile.Selection) error {
		r, err := report(s)
		if err != nil {
			return err
		}
		if json {
			return r.JSON(w, o)
		}
		return r.Text(w, o)
	}, nil
}
