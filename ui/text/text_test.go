package text_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"ccagent/ui/printer"
	ccscreen "ccagent/ui/screen/centres"
	"ccagent/ui/screen/flame"
	"ccagent/ui/screen/hot"
	sourcescreen "ccagent/ui/screen/source"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/centres"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
	"ccagent/profile/source"
	"ccagent/profile/stacks"
	"ccagent/profile/timeline"
	"ccagent/ui/internal/golden"
	"ccagent/ui/safe"
	"ccagent/ui/text"
)

func load(t testing.TB, log []byte) *profile.Profile {
	t.Helper()
	p, err := profile.Load(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// views prints every view of a profile, each by the name of its golden file.
func views(t testing.TB, p *profile.Profile, o printer.Options) map[string]string {
	t.Helper()
	s := p.Select(profile.Filter{})
	out := map[string]string{}
	put := func(name string, print func(w io.Writer) error) {
		var b bytes.Buffer
		if err := print(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = b.String()
	}
	for _, l := range profile.Levels {
		put("hot-"+l.String(), func(w io.Writer) error { return hot.Report{Selection: s, Level: l}.Text(w, o) })
		put("hot-"+l.String()+".json", func(w io.Writer) error { return hot.Report{Selection: s, Level: l}.JSON(w, o) })
	}
	tree, inverted := stacks.TreeOf(s, stacks.Options{}), stacks.TreeOf(s, stacks.Options{Invert: true})
	put("stacks", func(w io.Writer) error { return flame.Report{Selection: s, Tree: tree}.Text(w, o) })
	put("stacks-inverted", func(w io.Writer) error {
		return flame.Report{Selection: s, Tree: inverted, Limits: flame.Limits{MinShare: 0.04}}.Text(w, o)
	})
	put("stacks.json", func(w io.Writer) error {
		return flame.Report{Selection: s, Tree: tree, Inverted: false}.JSON(w, printer.Options{})
	})
	for mode := centres.ModeLexical; mode <= centres.ModeStacks; mode++ {
		c := centres.Attribute(s, centres.Find(p, centres.Set{Patterns: []centres.Pattern{{Preset: centres.PresetBindings}}}), mode)
		put("ccs-"+mode.String(), func(w io.Writer) error { return ccscreen.Report{Selection: s, Costs: c}.Text(w, o) })
		put("ccs-"+mode.String()+".json", func(w io.Writer) error { return ccscreen.Report{Selection: s, Costs: c}.JSON(w, o) })
		if mode == centres.ModeStacks {
			put("ccs-prof", func(w io.Writer) error { return ccscreen.ProfReport(w, s, c, c, o) })
			put("ccs-graph", func(w io.Writer) error { return ccscreen.Graph(w, s, c, o) })
			put("ccs-stack", func(w io.Writer) error { return ccscreen.ExpensiveStack(w, s, c, o) })
		}
	}
	put("folded", func(w io.Writer) error { return flame.Folded(w, tree) })
	buckets := 40
	if o.Width > 0 {
		buckets = text.TimelineBuckets(o)
	}
	tl := timeline.Of(s, timeline.Options{Buckets: buckets})
	put("timeline", func(w io.Writer) error { return text.OverTime{Selection: s, Timeline: tl}.Text(w, o) })
	put("timeline.json", func(w io.Writer) error { return text.OverTime{Selection: s, Timeline: tl}.JSON(w, printer.Options{}) })
	put("info", func(w io.Writer) error { return text.Info{Profile: p}.Text(w, o) })
	put("info.json", func(w io.Writer) error { return text.Info{Profile: p}.JSON(w, printer.Options{}) })
	put("doctor", func(w io.Writer) error { return text.Doctor{Profile: p}.Text(w, o) })
	put("doctor.json", func(w io.Writer) error { return text.Doctor{Profile: p}.JSON(w, printer.Options{}) })
	for i := 1; i < p.Files(); i++ {
		v := source.OfFile(s, columns.FileID(i))
		name := "source-" + strings.ReplaceAll(v.Path, "/", "_")
		put(name, func(w io.Writer) error { return sourcescreen.Report{Selection: s, View: v}.Text(w, o) })
		put(name+".json", func(w io.Writer) error { return sourcescreen.Report{Selection: s, View: v}.JSON(w, printer.Options{}) })
	}
	bindings := p.Elements(profile.LevelBinding)
	for i := range bindings {
		if v := source.CoreOf(s, &bindings[i]); v.Problem == "" {
			name := "core-" + bindings[i].Name
			put(name, func(w io.Writer) error { return sourcescreen.CoreReport{Selection: s, View: v}.Text(w, o) })
			put(name+".json", func(w io.Writer) error {
				return sourcescreen.CoreReport{Selection: s, View: v}.JSON(w, printer.Options{})
			})
		}
	}
	return out
}

func TestGolden(t *testing.T) {
	p := load(t, logtest.NBody().End())
	for name, got := range views(t, p, printer.Options{File: "nbody.eventlog"}) {
		if !strings.HasSuffix(name, ".json") {
			name += ".txt"
		}
		golden.Check(t, name, got)
	}
	for name, got := range views(t, p, printer.Options{File: "nbody.eventlog", Width: 80, Color: true}) {
		if strings.HasPrefix(name, "hot-binding") && !strings.HasSuffix(name, ".json") || name == "stacks" {
			golden.Check(t, name+"-80-color.txt", got)
		}
	}
}

func TestGoldenCutLog(t *testing.T) {
	p := load(t, logtest.NBody().EndAbruptly(false))
	v := views(t, p, printer.Options{File: "cut.eventlog"})
	golden.Check(t, "cut-info.txt", v["info"])
	golden.Check(t, "cut-hot.txt", v["hot-binding"])
	if !strings.Contains(v["info"], "ccagent symbolize") {
		t.Error("info does not name the remedy for missing symbols")
	}
}

// What to do about a library without notes takes several lines.
func TestInfoTellsRemedies(t *testing.T) {
	l := logtest.New()
	insert := l.Binding("containers-0.6.4.1", "Data.Map", "insert", 0)
	node := l.Stack(l.Code(insert, eventlog.QualityExact, eventlog.CategoryHaskell))
	for i := range 10 {
		l.Sample(uint64(i+1), 1, node)
	}
	got := views(t, load(t, l.End()), printer.Options{File: "x.eventlog"})["info"]
	want := "  → cabal.project:\n      package containers\n        ghc-options: -g3\n"
	if !strings.Contains(got, want) || strings.ContainsRune(got, '\ufffd') {
		t.Errorf("no lines\n%s\nin\n%s", want, got)
	}
}

// Lines fit the width that they are printed for.
func TestWidth(t *testing.T) {
	p := load(t, hostile().End())
	for _, width := range []int{40, 60, 80, 100, 120, 200} {
		for name, got := range views(t, p, printer.Options{File: strings.Repeat("long/", 30) + "x.eventlog", Width: width}) {
			whole := (name == "info" || name == "doctor") && width >= 80
			if !strings.HasPrefix(name, "hot") && !strings.HasPrefix(name, "stacks") && name != "timeline" && !whole || strings.HasSuffix(name, ".json") {
				continue
			}
			for _, line := range strings.Split(got, "\n") {
				if w := safe.Width(line); w > width {
					t.Errorf("%s at %d columns: line of %d: %q", name, width, w, line)
				}
			}
		}
	}
}

const nasty = "\x1b]0;owned\x07\x1b[2J\u202e\u009b31m\xff\xfe\t漢字" + "\x00\r\n;"

// hostile is a log whose every string tries to talk to the terminal.
func hostile() *logtest.Log {
	l := logtest.New()
	l.Write(0, &eventlog.EventDef{Index: 1, Requested: nasty, Granted: nasty, Fallback: nasty, Unit: nasty})
	l.Write(0, &eventlog.Module{ID: 2, Path: nasty})
	l.Symbol(&eventlog.ModuleSymbols{Module: 2, GHCVersion: nasty, Way: nasty, Problem: nasty})
	f := l.File(nasty+".hs", nasty+"\n"+strings.Repeat("x", 500)+"\n")
	b := l.Binding(nasty, nasty, nasty, 0)
	long := l.Binding("main", "Main", strings.Repeat("veryLongName", 1000), 0)
	c := l.Function(nasty, eventlog.CategoryForeign)
	l.Symbol(&eventlog.Core{ID: 1, Binding: b, Name: nasty, Dump: nasty, TextSize: 2 * uint64(len(nasty)), Problem: nasty,
		Notes: []eventlog.CoreNote{{Span: 1, Line: 1 << 31, EndLine: 1 << 30}, {Span: 1, Line: 1, EndLine: 1 << 31}}})
	l.Symbol(&eventlog.CoreText{Core: 1, Text: []byte(nasty + nasty)})
	code := l.Block(b, l.Span(f, 1, 1, 2, 5, b))
	l.Symbol(&eventlog.File{ID: 9, Path: "B.hs", Problem: nasty})
	for i := range uint64(8) {
		l.Sample(i, 10, l.Stack(code, l.Block(long, l.Span(f, 2, 1, 2, 9, long)), l.Code(c, eventlog.QualityExact, eventlog.CategoryForeign)))
		l.Sample(i, 10, l.Stack(code))
		l.Sample(i, 10, l.Stack(l.Code(b, eventlog.QualityNear, eventlog.CategoryHaskell)))
		l.SampleOf(i, eventlog.Sample{Event: 1, Weight: 3, Node: l.Stack(code)})
	}
	return l
}

// Whatever a program calls its things, no view sends controls to the terminal.
func TestNothingReachesTheTerminal(t *testing.T) {
	p := load(t, hostile().End())
	for name, got := range views(t, p, printer.Options{File: nasty}) {
		if !utf8.ValidString(got) {
			t.Errorf("%s: not UTF-8", name)
		}
		for i, r := range got {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%s: %U at %d: %q", name, r, i, got[max(0, i-20):min(len(got), i+20)])
				break
			}
		}
		if strings.HasSuffix(name, ".json") && !json.Valid([]byte(got)) {
			t.Errorf("%s: not JSON", name)
		}
	}
}

// The documents' fixed fields, by the command-line contract.
func TestContractFields(t *testing.T) {
	v := views(t, load(t, logtest.NBody().End()), printer.Options{File: "x"})
	for _, c := range []struct{ view, at, fields string }{
		{"hot-span.json", "", "event unit samples total lost unresolved level rows"},
		{"hot-span.json", "rows", "element kind file span module share only inclusive samples"},
		{"stacks.json", "", "event total root"},
		{"stacks.json", "root", "name module file line category self total children"},
		{"info.json", "", "program ghc host events stacks categories agent duration_seconds"},
		{"info.json", "ghc", "version way"},
		{"info.json", "events", "name requested granted fallback unit samples weight lost throttled"},
		{"info.json", "stacks", "complete truncated failed reasons"},
		{"info.json", "agent", "cpu_seconds max_rss_bytes bpf_ns_per_sample"},
	} {
		var doc any
		if err := json.Unmarshal([]byte(v[c.view]), &doc); err != nil {
			t.Fatal(err)
		}
		m := doc.(map[string]any)
		if c.at != "" {
			doc = m[c.at]
			if l, ok := doc.([]any); ok {
				doc = l[0]
			}
			m = doc.(map[string]any)
		}
		for _, f := range strings.Fields(c.fields) {
			if _, ok := m[f]; !ok {
				t.Errorf("%s %s has no %q", c.view, c.at, f)
			}
		}
	}
}

func TestNoSamples(t *testing.T) {
	for name, log := range map[string][]byte{"no samples": logtest.New().End(), "cut": logtest.New().EndAbruptly(false)} {
		v := views(t, load(t, log), printer.Options{File: "empty.eventlog"})
		if !strings.Contains(v["hot-binding"], "No sample") || !strings.Contains(v["doctor"], "no samples") {
			t.Errorf("%s: not printed:\n%s\n%s", name, v["hot-binding"], v["doctor"])
		}
		for view, got := range v {
			if strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
				t.Errorf("%s: %s: %s", name, view, got)
			}
		}
	}
}
