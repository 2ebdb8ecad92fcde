package e2e

import (
	"testing"

	"ccagent/internal/testprog"
)

type hotView struct {
	Unit  string
	Total uint64
	Rows  []hotRow
}

func (h *hotView) share(element string) float64 {
	for _, r := range h.Rows {
		if r.Element == element {
			return r.Share
		}
	}
	return 0
}

// The two problems of docs/case-study.md can be found: a strict fold that accumulates
// builders spends its time in GC, and an expression that full laziness floats out of a
// reader's function is allocated although it is never used.
func TestWalkThrough(t *testing.T) {
	escape := testprog.Build(t, "escape", testprog.Options{})
	var fold, concat hotView
	log, _ := record(t, nil, escape, "fold", "1000000", "3")
	view(t, &fold, "hot", log)
	log, _ = record(t, nil, escape, "concat", "1000000", "10")
	view(t, &concat, "hot", log)
	t.Logf("in the collector: fold %.3f, concat %.3f", fold.share("(GC)"), concat.share("(GC)"))
	if fold.share("(GC)") < 0.4 || concat.share("(GC)") > 0.2 {
		t.Errorf("in the collector: fold %.3f, concat %.3f; want most of the one, little of the other", fold.share("(GC)"), concat.share("(GC)"))
	}

	rewriter := testprog.Build(t, "rewriter", testprog.Options{})
	var late, early, unused hotView
	log, _ = record(t, nil, rewriter, "late", "300000", "10")
	view(t, &late, "hot", "--event", "alloc", log)
	view(t, &unused, "hot", "--focus", `^Main\.told$`, log)
	log, _ = record(t, nil, rewriter, "early", "300000", "10")
	view(t, &early, "hot", "--event", "alloc", log)
	ratio := float64(late.Total) / float64(early.Total)
	t.Logf("late allocates %.3f times what early does", ratio)
	if ratio < 1.4 || ratio > 1.6 || late.share("Main.late") < 0.9 {
		t.Errorf("late allocates %.3f times what early does, %.3f of it in Main.late; want 1.5 times, nearly all", ratio, late.share("Main.late"))
	}
	if unused.Total > 0 {
		t.Errorf("what is never looked at took %d %s", unused.Total, unused.Unit)
	}
}
