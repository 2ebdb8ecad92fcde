package e2e

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

type allocRow struct {
	Closure, Kind, Module, File string
	Line                        int
	Share, Low, High            float64
	Mean                        float64 `json:"mean_bytes"`
}

// byClosure gives what ccview alloc says of a log.
func byClosure(t *testing.T, log string) (blocks int, rows map[string]allocRow) {
	t.Helper()
	var doc struct {
		Blocks  int
		Problem string
		Rows    []allocRow
	}
	view(t, &doc, "alloc", log)
	if doc.Problem != "" {
		t.Errorf("%s", doc.Problem)
	}
	rows = map[string]allocRow{}
	for _, r := range doc.Rows {
		rows[strings.TrimSpace(r.Kind+" "+r.Closure)] = r
	}
	return doc.Blocks, rows
}

// What a program allocates by arithmetic is what ccview alloc shows: sizes exactly, shares within
// their intervals, thunks and functions with the place where they are written.
func TestAllocationByClosure(t *testing.T) {
	for _, c := range []struct {
		options testprog.Options
		args    []string
		sizes   map[string]float64 // bytes of one closure; one of each is allocated in a turn
	}{
		{testprog.Options{}, nil, map[string]float64{"constructor Main.Three": 32, "thunk Main.turn": 24, "function Main.turn": 16, "(byte arrays)": 56}},
		{testprog.Options{Threaded: true}, []string{"2000000", "evaluated", "+RTS", "-N2"},
			map[string]float64{"constructor Main.Three": 32, "(evaluated thunks)": 24, "constructor GHC.Types.I#": 16, "function Main.turn": 16, "(byte arrays)": 56}},
		{testprog.Options{Prof: true}, nil, map[string]float64{"constructor Main.Three": 48, "thunk Main.turn": 40, "function Main.turn": 32, "(byte arrays)": 72}},
		{testprog.Options{Release: "9.10.3"}, []string{"4000000"}, map[string]float64{"constructor Main.Three": 32, "thunk Main.turn": 24, "function Main.turn": 16, "(byte arrays)": 56}},
	} {
		name := fmt.Sprintf("%+v %v", c.options, c.args)
		program := testprog.Build(t, "closures", c.options)
		log, _ := record(t, []string{"--max-overhead", "0"}, program, c.args...)
		blocks, rows := byClosure(t, log)
		if blocks < 50 {
			t.Errorf("%s: %d blocks", name, blocks)
			continue
		}
		var turn float64
		for _, size := range c.sizes {
			turn += size
		}
		for what, size := range c.sizes {
			r, ok := rows[what]
			want := size / turn
			// Two and a half times the interval are five standard deviations.
			if off := math.Abs(r.Share - want); !ok || off > 2.5*max(r.High-r.Share, r.Share-r.Low) {
				t.Errorf("%s: %s has %.4f of %d blocks (%.4f to %.4f), want %.4f", name, what, r.Share, blocks, r.Low, r.High, want)
			}
			if math.Abs(r.Mean-size) > 0.02*size {
				t.Errorf("%s: %s has %.1f bytes on average, want %.0f", name, what, r.Mean, size)
			}
			if kind, _, _ := strings.Cut(what, " "); (kind == "thunk" || kind == "function") && (!strings.HasSuffix(r.File, "Main.hs") || r.Line < 27 || r.Line > 33) {
				t.Errorf("%s: %s is written in %s:%d", name, what, r.File, r.Line)
			}
		}
		if r := rows["(not read)"]; r.Share > 0.01 {
			t.Errorf("%s: %.4f could not be read", name, r.Share)
		}
	}
}
