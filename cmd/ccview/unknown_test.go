package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"
)

// neverZero are the fields that cannot be 0 where they are known.
var neverZero = strings.Fields(`pid tid cpus line capabilities period frequency_hz achieved_hz on_counter max_rss_bytes bpf_ns_per_sample
	walk_median_ns walk_p99_ns interrupt_ns sample_ns probe_ns asked hz event_hz live_bytes peak_live_bytes peak_heap_bytes mean_bytes
	duration_seconds low_high high only_high inclusive_high inherited_high self_high os_thread thread`)

// blank are the texts that may be empty, for they are what was written: lines of a source, and arguments.
var blank = []string{"lines[].text", "args[]", "bindings[].lines[].text"}

// address is what a pointer looks like that was printed in place of what it points to: all other figures are
// grouped, or have a unit.
var address = regexp.MustCompile(`\b(0x[cC]0[0-9a-f]{8}|[0-9]{11,20})\b`)

// In the JSON of every command, of logs of which much is not known, that is null: no text is empty, and no
// figure is 0 that cannot be. What commands print as text are no pointers.
func TestUnknownIsNull(t *testing.T) {
	run, err := filepath.Abs(filepath.Join(logs, "run.eventlog"))
	if err != nil {
		t.Fatal(err)
	}
	bands, err := filepath.Abs("../../ui/internal/fixture/testdata/bands-hT.eventlog")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	foreign := filepath.Join(dir, "foreign.pb.gz")
	writePprof(t, foreign)
	for _, log := range []string{run, filepath.Join(logs, "raw.eventlog"), filepath.Join(logs, "cut.eventlog"), filepath.Join(logs, "bare.eventlog"),
		filepath.Join(logs, "blocks.eventlog"), filepath.Join(logs, "graph.eventlog"), bands, foreign} {
		for _, args := range [][]string{
			{"hot"}, {"hot", "--level", "span"}, {"hot", "--level", "file"}, {"stacks"}, {"stacks", "--invert"}, {"ccs"}, {"ccs", "--mode", "stacks"}, {"ccs", "--costs"},
			{"timeline"}, {"info"}, {"doctor"}, {"gc"}, {"heap"}, {"heap", "--retained"}, {"heap", "--path", "main"}, {"heap", "--root", "thread"}, {"alloc"}, {"threads"}, {"chart"},
			{"source", "(unresolved)"}, {"source", "Physics.step"}, {"code", "Physics.step"}, {"diff", "--all"}, {"diff", "--stacks"}, {"ls"},
		} {
			name := strings.Join(args, " ") + " " + filepath.Base(log)
			call := append([]string{args[0], "--format", "json"}, args[1:]...)
			switch args[0] {
			case "source", "code":
				call = []string{args[0], "--format", "json", log, args[1]}
			case "ls":
				call = append(call, dir)
			case "diff":
				call = append(call, log, log)
			default:
				call = append(call, log)
			}
			r := ccview(t, call...)
			if r.status != 0 { // what the log lacks for the command is said on stderr
				if r.stderr == "" || r.stdout != "" {
					t.Errorf("%s: status %d, %q", name, r.status, r.stdout)
				}
				continue
			}
			var v any
			if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text := slices.DeleteFunc(slices.Clone(call), func(a string) bool { return a == "--format" || a == "json" })
			if a := address.FindString(ccview(t, text...).stdout); a != "" {
				t.Errorf("%s prints %s", name, a)
			}
			for _, path := range unknowns(v, "") {
				if args[0] == "diff" && strings.HasSuffix(path, "high is 0") { // of a difference, which may be 0
					continue
				}
				t.Errorf("%s: %s", name, path)
			}
		}
	}
}

// unknowns returns the fields of a document that are empty or 0 where they may not be, each once.
func unknowns(v any, path string) []string {
	var out []string
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			for _, s := range unknowns(x, strings.TrimPrefix(path+"."+k, ".")) {
				add(s)
			}
		}
	case []any:
		for _, x := range v {
			for _, s := range unknowns(x, path+"[]") {
				add(s)
			}
		}
	case string:
		if v == "" && !slices.ContainsFunc(blank, func(end string) bool { return strings.HasSuffix(path, end) }) {
			add(path + " is empty")
		}
	case float64:
		if v == 0 && slices.Contains(neverZero, path[strings.LastIndexByte(path, '.')+1:]) {
			add(path + " is 0")
		}
	}
	return out
}

// Figures that nobody counted are null, those that were counted are not.
func TestKnownAndUnknown(t *testing.T) {
	foreign := filepath.Join(t.TempDir(), "foreign.pb.gz")
	writePprof(t, foreign)
	for _, c := range []struct {
		log                  string
		args, known, unknown []string
	}{
		{"run.eventlog", []string{"info"}, []string{"program.path", "program.pid", "program.uid", "program.mode", "program.start", "ghc.version", "host.kernel", "host.cpus", "events.0.lost", "events.0.throttled",
			"agent.cpu_seconds", "duration_seconds", "categories.haskell"}, nil},
		{"run.eventlog", []string{"hot"}, []string{"event", "lost", "unresolved", "rows.0.file", "rows.0.low", "rows.0.high", "rows.0.effective_samples", "sentence"}, nil},
		{"raw.eventlog", []string{"info"}, []string{"categories.unresolved"}, []string{"categories.haskell", "categories.gc", "program.end"}},
		{foreign, []string{"info"}, nil, []string{"program.path", "program.pid", "program.uid", "program.mode", "program.start", "program.end", "ghc.version", "ghc.way", "ghc.layout_assumed", "host.kernel", "host.cpus", "rts",
			"events.0.lost", "events.0.throttled", "events.0.frequency_hz", "events.0.period", "events.0.achieved_hz", "events.0.on_counter", "events.0.counted",
			"agent.cpu_seconds", "agent.max_rss_bytes", "agent.bpf_ns_per_sample", "agent.bpf_runs", "agent.overhead", "duration_seconds", "modules.0.build_id", "modules.0.dwarf"}},
		{foreign, []string{"hot"}, []string{"event", "unit", "rows.0.low"}, []string{"lost", "rows.0.file", "rows.0.span"}},
		{foreign, []string{"gc"}, nil, []string{"watched_seconds", "total"}},
		{"run.eventlog", []string{"heap", "--rss"}, []string{"problem"}, []string{"rss_bytes", "accounted_bytes", "unaccounted_bytes", "megablocks", "threads", "beside", "advice"}},
		{"run.eventlog", []string{"heap", "--retained"}, []string{"problem"}, []string{"bytes", "closures", "unreached_bytes", "at_rest"}},
		{"graph.eventlog", []string{"heap", "--rss"}, []string{"rss_bytes", "slop_bytes", "beside", "threads"}, nil},
		{foreign, []string{"threads"}, []string{"problem"}, []string{"alloc_event"}},
	} {
		r := ccview(t, append(append(c.args, "--format", "json"), c.log)...)
		var doc any
		if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil {
			t.Fatalf("%v: %v %s", c.args, err, r.stderr)
		}
		for _, path := range c.known {
			if at(doc, path) == nil {
				t.Errorf("%v %s: %s is not known", c.args, filepath.Base(c.log), path)
			}
		}
		for _, path := range c.unknown {
			if x := at(doc, path); x != nil {
				t.Errorf("%v %s: %s is %v", c.args, filepath.Base(c.log), path, x)
			}
		}
	}
}

// at returns what a path such as "rows.0.file" leads to; nil if there is nothing.
func at(v any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[key]
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// writePprof writes a profile that says as little as the format allows: two functions, no files, no times.
func writePprof(t *testing.T, path string) {
	t.Helper()
	f := &pprof.Function{ID: 1, Name: "main"}
	g := &pprof.Function{ID: 2, Name: "work"}
	a := &pprof.Location{ID: 1, Line: []pprof.Line{{Function: f}}}
	b := &pprof.Location{ID: 2, Line: []pprof.Line{{Function: g}}}
	p := &pprof.Profile{SampleType: []*pprof.ValueType{{Type: "samples", Unit: "count"}}, Function: []*pprof.Function{f, g}, Location: []*pprof.Location{a, b},
		Sample: []*pprof.Sample{{Location: []*pprof.Location{b, a}, Value: []int64{30}}, {Location: []*pprof.Location{a}, Value: []int64{10}}}}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := p.Write(file); err != nil {
		t.Fatal(err)
	}
}
