package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"
)

// An export to a file replaces the file's content as a whole, leaves no temporary file,
// and equals the export to stdout.
func TestExportFiles(t *testing.T) {
	dir := t.TempDir()
	for format, begins := range map[string]string{
		"pprof": "\x1f\x8b", "speedscope": `{"$schema"`, "folded": "", "firefox": `{"meta"`, "perf-script": "nbody 100/100 [000]", "eventlog": "hdrb",
	} {
		out := filepath.Join(dir, format)
		// The existing content is replaced completely.
		if err := os.WriteFile(out, []byte(strings.Repeat("old", 100000)), 0o644); err != nil {
			t.Fatal(err)
		}
		if r := ccview(t, "export", "--to", format, "-o", out, "run.eventlog"); r.status != 0 || r.stdout != "" {
			t.Fatalf("%s: status %d, %s", format, r.status, r.stderr)
		}
		b, err := os.ReadFile(out)
		if err != nil || len(b) == 0 || !bytes.HasPrefix(b, []byte(begins)) || bytes.Contains(b, []byte("oldold")) {
			t.Errorf("%s: %.60q, %v", format, b, err)
		}
		if r := ccview(t, "export", "--to", format, "run.eventlog"); r.stdout != string(b) {
			t.Errorf("%s: stdout differs from the file", format)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The flags choose what is exported.
func TestExportAppliesFilters(t *testing.T) {
	r := ccview(t, "export", "--to", "pprof", "--range", "0.0005-0.0605", "run.eventlog")
	p, err := pprof.ParseData([]byte(r.stdout))
	if err != nil {
		t.Fatal(err, r.stderr)
	}
	sum := int64(0)
	for _, s := range p.Sample {
		sum += s.Value[1]
	}
	if sum != 60_000_000 {
		t.Errorf("%d ns in range", sum)
	}
	r = ccview(t, "export", "--to", "folded", "--focus", "pairwise", "--causes", "run.eventlog")
	if want := "Main.main;Physics.step;Physics.pairwise;Physics.step_[i] 40000000\n"; !strings.Contains(r.stdout, want) || strings.Contains(r.stdout, "evacuate") {
		t.Errorf("folded: %s", r.stdout)
	}
}

// A log exported with a filter contains exactly what the filter keeps of the whole log.
func TestExportEventlogIsTheSelection(t *testing.T) {
	out := filepath.Join(t.TempDir(), "part.eventlog")
	flags := []string{"--range", "0.01-0.08", "--ignore", "map", "--cap", "0"}
	if r := ccview(t, append([]string{"export", "--to", "eventlog", "-o", out, "run.eventlog"}, flags...)...); r.status != 0 {
		t.Fatal(r.stderr)
	}
	part := ccview(t, "hot", "--format", "json", out)
	want := ccview(t, append([]string{"hot", "--format", "json", "run.eventlog"}, flags...)...)
	var a, b map[string]any
	if json.Unmarshal([]byte(part.stdout), &a) != nil || json.Unmarshal([]byte(want.stdout), &b) != nil {
		t.Fatal(part.stderr, want.stderr)
	}
	if rows, _ := a["rows"].([]any); len(rows) < 3 || a["total"] != b["total"] {
		t.Errorf("%v\n%v", a, b)
	}
	x, _ := json.Marshal(a["rows"])
	y, _ := json.Marshal(b["rows"])
	if !bytes.Equal(x, y) {
		t.Errorf("%s\n%s", x, y)
	}
}

// An export with wrong arguments ends with its exit status and a message that says what
// is wrong.
func TestWrongExports(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"run.eventlog"}, 2, "needs --to"},
		{[]string{"--to", "svg", "run.eventlog"}, 2, "choose pprof"},
		{[]string{"--to", "pprof"}, 2, "takes a log"},
		{[]string{"--to", "pprof", "run.eventlog", "run.eventlog"}, 2, "only --to eventlog takes several"},
		{[]string{"--to", "folded", "--compat", "threadscope", "run.eventlog"}, 2, "--compat is for"},
		{[]string{"--to", "eventlog", "--compat", "emacs", "run.eventlog"}, 2, "hs-speedscope"},
		{[]string{"--to", "eventlog", "--compat", "eventlog2html", "run.eventlog"}, 2, "-e alloc"},
		{[]string{"--to", "eventlog", "--hide", "x", "run.eventlog"}, 2, "--hide"},
		{[]string{"--to", "folded", "--format", "json", "run.eventlog"}, 2, "--format"},
		{[]string{"--to", "folded", "--focus", "no such thing", "run.eventlog"}, 2, "none of the samples"},
		{[]string{"--to", "folded", "text"}, 1, "offset"},
		{[]string{"--to", "eventlog", "text"}, 1, "offset"},
		{[]string{"--to", "eventlog", "no.eventlog"}, 1, "no such file"},
		{[]string{"--to", "folded", "-o", "no/such/folder", "run.eventlog"}, 1, "no such file"},
	} {
		r := ccview(t, append([]string{"export"}, c.args...)...)
		if r.status != c.status || !strings.Contains(r.stderr, c.says) || r.stdout != "" {
			t.Errorf("%v: status %d, %q; want %d, %q", c.args, r.status, r.stderr, c.status, c.says)
		}
	}
}
