package source_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
	"ccagent/profile/source"
)

// The lines and spans of a source file have the shares computed by hand.
func TestSource(t *testing.T) {
	s := nbody(t).Select(profile.Filter{})
	v, err := source.Find(s, "Physics.hs")
	if err != nil {
		t.Fatal(err)
	}
	share := map[uint32]float64{}
	for _, l := range v.Lines {
		if l.Share > 0 {
			share[l.Number] = l.Share
		}
	}
	// The 40 samples in pairwise have their narrowest spans on lines 7 and 10.
	if d := cmp.Diff(map[uint32]float64{4: 0.2, 10: 0.4, 7: 0.4}, share); d != "" {
		t.Error(d)
	}
	if len(v.Lines) != 10 || v.Lines[3].Text != "step dt (State ps) =" || v.Share != 0.6 || v.Samples != 60 {
		t.Errorf("%d lines, share %v, samples %d", len(v.Lines), v.Share, v.Samples)
	}
	if got := v.Lines[9].Spans; len(got) != 2 {
		t.Errorf("line 10 is touched by spans %v", got)
	}

	v, err = source.Find(s, "pairwise")
	if err != nil || v.Name != "Physics.pairwise" || v.Extent != (columns.Extent{Line: 10, Col: 1, EndLine: 10, EndCol: 51}) || len(v.Spans) != 2 {
		t.Errorf("pairwise: %+v, %v", v, err)
	}
	if len(v.Also) != 1 || v.Also[0].Element.Name != "Physics.step" {
		t.Errorf("also: %+v", v.Also)
	}
	v, err = source.Find(s, "app/Main.hs")
	if err != nil || v.Problem == "" {
		t.Errorf("a file without text does not say so: %+v, %v", v, err)
	}
	for query, want := range map[string]string{
		"nosuch": `no file or binding of this log is named "nosuch"; there are app/Main.hs, src/Physics.hs`,
		"pair":   `there are Physics.pairwise`,
	} {
		if _, err := source.Find(s, query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// A query that names several files or bindings is refused with all candidates.
func TestSourceAmbiguous(t *testing.T) {
	l := logtest.New()
	for _, dir := range []string{"a", "b"} {
		f := l.File(dir+"/Util.hs", "x = 1\n")
		b := l.Binding("main", "Util."+dir, "go", 0)
		l.Sample(1, 1, l.Stack(l.Block(b, l.Span(f, 1, 1, 1, 6, b))))
	}
	s := load(t, l.End()).Select(profile.Filter{})
	for query, want := range map[string]string{"Util.hs": "a/Util.hs, b/Util.hs", "go": "Util.a.go, Util.b.go"} {
		_, err := source.Find(s, query)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", query, err)
		}
	}
	if _, err := source.Find(s, "b/Util.hs"); err != nil {
		t.Error(err)
	}
}

func load(t testing.TB, log []byte) *profile.Profile {
	t.Helper()
	p, err := profile.Load(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func nbody(t testing.TB) *profile.Profile { return load(t, logtest.NBody().End()) }
