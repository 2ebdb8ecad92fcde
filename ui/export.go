package ui

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"ccagent/ui/printer"
	ccscreen "ccagent/ui/screen/centres"
	"ccagent/ui/screen/flame"
	heapscreen "ccagent/ui/screen/heap"
	"ccagent/ui/screen/hot"
	sourcescreen "ccagent/ui/screen/source"

	tea "charm.land/bubbletea/v2"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/centres"
	"ccagent/profile/export"
	"ccagent/profile/source"
	"ccagent/profile/stacks"
	"ccagent/ui/model"
)

// exportHint tells what a file's ending means.
const exportHint = ".txt .json: this screen; .folded .pprof .speedscope.json .firefox.json .perf; of cost centres .prof .dot .svg"

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

// exportName is what the prompt begins with.
func (a *App) exportName() string {
	what := [...]string{"hot", "source", "stacks", "ccs", "heap", "diff"}[a.screen]
	return strings.TrimSuffix(a.src.Name, filepath.Ext(a.src.Name)) + "." + what + ".txt"
}

// checkExport says what is wrong with an export's file name.
func (a *App) checkExport(path string) error {
	_, err := a.writerFor(path)
	return err
}

// export writes what the transforms keep into a new file, beside the event loop.
func (a *App) export(path string) tea.Cmd {
	write, err := a.writerFor(path)
	if err != nil {
		a.say("export: "+err.Error(), true)
		return nil
	}
	p, event, ts := a.c.Profile, a.c.Event, a.c.Stack.All()
	return func() tea.Msg {
		f, err := model.Filter(event, ts)
		if err != nil {
			return exportedMsg{err: err}
		}
		var b bytes.Buffer
		if err := write(&b, p.Select(f)); err != nil {
			return exportedMsg{err: err}
		}
		return exportedMsg{path, b.Len(), writeNew(path, b.Bytes())}
	}
}

func (a *App) exported(m exportedMsg) {
	if m.err != nil {
		a.say("export: "+m.err.Error(), true)
		return
	}
	a.say(fmt.Sprintf("%s: %s written", m.path, format.Bytes(uint64(m.size))), false)
}

type writer = func(io.Writer, *profile.Selection) error

// writerFor gives what writes a file, by its name's ending.
func (a *App) writerFor(path string) (writer, error) {
	name := strings.ToLower(filepath.Base(path))
	for _, e := range endings {
		if strings.HasSuffix(name, e.end) {
			return otherTool(e.format), nil
		}
	}
	ext := filepath.Ext(name)
	switch ext {
	case ".txt", ".json":
		return a.twin(ext == ".json")
	case ".prof", ".dot", ".svg":
		if cc := a.centres(); cc != nil {
			return centreReport(ext, cc.Choice()), nil
		}
		return nil, fmt.Errorf("%s files are of cost centres; 4 shows them", ext)
	}
	return nil, fmt.Errorf("the ending tells the format: %s", exportHint)
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

// twin is the text or JSON of the screen that is shown.
func (a *App) twin(json bool) (writer, error) {
	o := printer.Options{File: a.src.Name, Top: -1}
	print := func(w io.Writer, r printer.Report) error {
		if json {
			return r.JSON(w, o)
		}
		return r.Text(w, o)
	}
	c := a.c
	switch a.screen {
	case 0:
		return func(w io.Writer, s *profile.Selection) error {
			return print(w, hot.Report{Selection: s, Level: profile.LevelBinding})
		}, nil
	case 1:
		if c.File == 0 {
			return nil, fmt.Errorf("no file is open")
		}
		file := c.File
		return func(w io.Writer, s *profile.Selection) error {
			v := source.OfFile(s, file)
			return print(w, sourcescreen.Report{Selection: s, View: v, All: true})
		}, nil
	case 2:
		return treeWriter(c.Sandwich, c.Invert, print), nil
	case 3:
		choice := a.centres().Choice()
		return func(w io.Writer, s *profile.Selection) error {
			cc, err := model.Attribute(s, choice)
			if err != nil {
				return err
			}
			return print(w, ccscreen.Report{Selection: s, Costs: cc})
		}, nil
	case heapScreen:
		p := c.Profile
		return func(w io.Writer, _ *profile.Selection) error {
			return print(w, heapscreen.Report{Profile: p})
		}, nil
	}
	return nil, fmt.Errorf("ccview diff prints this screen: ccview diff A B > FILE")
}

func treeWriter(of model.Function, invert bool, print func(io.Writer, printer.Report) error) writer {
	return func(w io.Writer, s *profile.Selection) error {
		if of == (model.Function{}) {
			t := stacks.TreeOf(s, stacks.Options{Invert: invert})
			return print(w, flame.Report{Selection: s, Tree: t, Inverted: invert})
		}
		t := stacks.TreeOf(s, stacks.Options{})
		f, _ := t.Function(of.Name)
		if f == nil {
			return fmt.Errorf("no stack that is kept has %s", of.Name)
		}
		callers, callees := t.Sandwich(f)
		return print(w, flame.SandwichReport{Selection: s, Callers: callers, Callees: callees})
	}
}

// centreReport is the layout of +RTS -p, or the call graph of the centres.
func centreReport(ext string, choice model.CentreChoice) writer {
	if !choice.Mode.Stacks() {
		choice.Mode = centres.ModeStacks
	}
	return func(w io.Writer, s *profile.Selection) error {
		cc, err := model.Attribute(s, choice)
		if err != nil {
			return err
		}
		switch ext {
		case ".dot":
			return ccscreen.Graph(w, s, cc, printer.Options{})
		case ".svg":
			return ccscreen.GraphSVG(w, s, cc, printer.Options{})
		}
		return ccscreen.ProfReport(w, s, cc, nil, printer.Options{})
	}
}
