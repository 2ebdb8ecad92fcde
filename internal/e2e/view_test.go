package e2e

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// hotJSON and the others are the JSON fields that docs and scripts may use.
type hotJSON struct {
	Event      string
	Unit       string
	Samples    int
	Total      float64
	Lost       float64
	Unresolved float64
	Level      string
	Rows       []hotRow
}

type hotRow struct {
	Element, Kind, File, Span, Module string
	Share, Only, Inclusive, Low, High float64
	Samples                           int
}

func hotOf(t *testing.T, log string, args ...string) *hotJSON {
	t.Helper()
	var h hotJSON
	view(t, &h, append([]string{"hot", log, "--level", "binding", "--top", "1000"}, args...)...)
	return &h
}

func (h *hotJSON) element(t *testing.T, name string) hotRow {
	t.Helper()
	for _, r := range h.Rows {
		if r.Element == name {
			return r
		}
	}
	t.Fatalf("hot has no row %s in %+v", name, h.Rows)
	return hotRow{}
}

type stacksJSON struct {
	Event string
	Total float64
	Root  *stackNode
}

type stackNode struct {
	Name, Module, File, Category string
	Line                         int
	Self, Total                  float64
	Children                     []*stackNode
}

// through sums the weight of stacks that have the binding in them.
func (n *stackNode) through(binding string) float64 {
	if n.Name == binding || n.Module+"."+n.Name == binding {
		return n.Total
	}
	sum := 0.0
	for _, c := range n.Children {
		sum += c.through(binding)
	}
	return sum
}

type infoJSON struct {
	Program map[string]any
	GHC     struct{ Version, Way string }
	Host    map[string]any
	Events  []struct {
		Name, Requested, Granted, Fallback, Unit string
		Samples, Weight, Lost, Throttled         float64
	}
	Stacks struct {
		Complete, Truncated, Failed float64
		Reasons                     map[string]float64
	}
	Categories map[string]float64
	Agent      struct {
		CPUSeconds     float64 `json:"cpu_seconds"`
		MaxRSSBytes    float64 `json:"max_rss_bytes"`
		BPFNsPerSample float64 `json:"bpf_ns_per_sample"`
	}
	DurationSeconds float64 `json:"duration_seconds"`
}

// What ccview prints agrees with the log's events, and is consistent.
func TestViewsAgree(t *testing.T) {
	// At a rate at which also a binding of two per cent surely has samples.
	log, r := record(t, []string{"-F", "997"}, testprog.Build(t, "example", testprog.Options{}))
	l := readLog(t, log)
	l.wantWhole(t)

	var info infoJSON
	view(t, &info, "info", log)
	if info.GHC.Version != l.capture.GHCVersion || info.GHC.Version == "" {
		t.Errorf("info: GHC %q, the log says %q", info.GHC.Version, l.capture.GHCVersion)
	}
	if len(info.Events) != 2 || int(info.Events[0].Samples) != len(l.samples) {
		t.Errorf("info: events %+v, the log has %d samples", info.Events, len(l.samples))
	}
	if info.Agent.CPUSeconds <= 0 || info.Agent.MaxRSSBytes <= 0 || info.Agent.BPFNsPerSample <= 0 || info.DurationSeconds <= 0 {
		t.Errorf("info has no cost of measuring: %+v, %v s", info.Agent, info.DurationSeconds)
	}
	wantLine(t, r.stderr, "overhead")
	wantLine(t, r.stderr, "samples")

	h := hotOf(t, log)
	if h.Samples != len(l.samples) {
		t.Errorf("hot: %d samples, the log has %d", h.Samples, len(l.samples))
	}
	for i, row := range h.Rows {
		if row.Only > row.Share+1e-9 || row.Share > row.Inclusive+1e-9 || row.Inclusive > 1+1e-9 {
			t.Errorf("hot: %s: only %v, share %v, inclusive %v are out of order", row.Element, row.Only, row.Share, row.Inclusive)
		}
		if i > 0 && row.Share > h.Rows[i-1].Share {
			t.Errorf("hot: %s stands below one with a smaller share", row.Element)
		}
	}
	h.element(t, "Count.pairs")
	h.element(t, "Words.split")

	var st stacksJSON
	view(t, &st, "stacks", log)
	if st.Total != h.Total || st.Root == nil || st.Root.Total != st.Total {
		t.Errorf("stacks: total %v, hot: total %v", st.Total, h.Total)
	}
	var sumSelf func(*stackNode) float64
	sumSelf = func(n *stackNode) float64 {
		s := n.Self
		for _, c := range n.Children {
			s += sumSelf(c)
		}
		return s
	}
	if s := sumSelf(st.Root); s < 0.999999*st.Total || s > 1.000001*st.Total {
		t.Errorf("stacks: selves sum to %v, total %v", s, st.Total)
	}

	for _, args := range [][]string{{log}, {"hot", log}, {"stacks", log}, {"info", log}, {"source", log, "Count.pairs"}} {
		r := run(t, command(t, ccview, args...))
		if r.status != 0 || strings.TrimSpace(r.stdout) == "" {
			t.Errorf("ccview %v: status %d, printed %q\n%s", args, r.status, r.stdout, r.stderr)
		}
		if strings.Contains(r.stdout, "\x1b") {
			t.Errorf("ccview %v: control sequences although stdout is no terminal", args)
		}
	}
}

// The ghc-events library, which other eventlog tools use, reads a capture to its end.
func TestGHCEventsReadsCaptures(t *testing.T) {
	if out, err := exec.Command("ghc-pkg", "--simple-output", "list", "ghc-events").Output(); err != nil || len(bytes.TrimSpace(out)) == 0 {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "the ghc-events library", Hint: "apt-get install libghc-ghc-events-dev"})
	}
	dump := testprog.Build(t, "eventdump", testprog.Options{NoDebug: true})
	log, _ := record(t, []string{"--compat", "hs-speedscope"}, testprog.Build(t, "example", testprog.Options{}), "50000")
	l := readLog(t, log)
	l.wantWhole(t)
	r := run(t, command(t, dump, log))
	if r.status != 0 || strings.Contains(r.stdout, "\nerror\t") {
		t.Fatalf("ghc-events: status %d\n%.2000s%s", r.status, r.stdout, r.stderr)
	}
	// It names the events it does not know by their ids.
	for id, want := range map[int]int{eventlog.IDSample: len(l.samples) + len(l.allocations), eventlog.IDCaptureEnd: 1} {
		if got := strings.Count(r.stdout, fmt.Sprintf("UnknownEvent {ref = %d}", id)); got != want {
			t.Errorf("ghc-events reads %d events %d, want %d", got, id, want)
		}
	}
	wantLine(t, r.stdout, "ProgramArgs", "example", "50000")
	// It knows the events that --compat adds.
	if got := strings.Count(r.stdout, "ProfSampleCostCentre {"); got != len(l.samples) {
		t.Errorf("ghc-events reads %d samples of cost centres, want %d", got, len(l.samples))
	}
}
