package rewrite

import (
	"slices"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
)

// piece is a capture from a second on, of the length, ns.
func piece(from, ns uint64) []byte {
	l := logtest.New()
	l.Sample(ns/2, 1, 0)
	l.Write(ns, &eventlog.Overhead{})
	return logtest.Of(l.End(), eventlog.Capture{PID: 100, Program: "/bin/api"}, from)
}

// Between captures none of which was under way nothing is known, also of a log that is merged or
// cut again; pieces that overlap or follow each other at once leave nothing open.
func TestHolesBetweenCaptures(t *testing.T) {
	const s = 1e9
	holes := func(log []byte) []columns.Gap { return load(t, log).Gaps }
	pieces := []Input{input("third", piece(40, 10*s)), input("first", piece(0, 10*s)), input("second", piece(10, 10*s+s/2)), input("within", piece(12, s))}
	merged, _ := rewritten(t, Options{}, pieces...)
	want := []columns.Gap{{From: 20*s + s/2, To: 40 * s}}
	if got := holes(merged); !slices.Equal(got, want) {
		t.Errorf("the holes are %v, want %v", got, want)
	}
	again, _ := rewritten(t, Options{}, input("merged", merged))
	if got := holes(again); !slices.Equal(got, want) {
		t.Errorf("written again, the holes are %v, want %v", got, want)
	}
	more, _ := rewritten(t, Options{}, input("merged", merged), input("fills a part", piece(25, 5*s)))
	if got, want := holes(more), []columns.Gap{{From: 20*s + s/2, To: 25 * s}, {From: 30 * s, To: 40 * s}}; !slices.Equal(got, want) {
		t.Errorf("with one more, the holes are %v, want %v", got, want)
	}
	cut, _ := rewritten(t, Options{Range: profile.Range{From: 22 * s, To: 30 * s}}, input("merged", merged))
	if got, want := holes(cut), []columns.Gap{{From: 22 * s, To: 30 * s}}; !slices.Equal(got, want) {
		t.Errorf("of a part, the holes are %v, want %v", got, want)
	}
	alone, _ := rewritten(t, Options{}, input("first", piece(0, 10*s)))
	if got := holes(alone); len(got) > 0 {
		t.Errorf("one capture has holes %v", got)
	}
}
