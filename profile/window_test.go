package profile

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"regexp"
	"testing"

	"ccagent/profile/logtest"
)

// What a scan of the samples gives is what their grid gives once it is made, for any window, stacks and
// marks.
func TestScanAndGridAgree(t *testing.T) {
	var b bytes.Buffer
	if err := logtest.Generate(&b, 60_000, 900, 5); err != nil {
		t.Fatal(err)
	}
	p, err := Load(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	filters := []Filter{{}, {Focus: []*regexp.Regexp{regexp.MustCompile("f1.*")}}, {Caps: []uint32{1, 3}}, {Threads: []uint64{7, 8, 9}}}
	made := 0
	for range 60 {
		s := p.Select(filters[rng.IntN(len(filters))])
		w := Window{From: rng.Uint64N(p.Duration), Buckets: 1 + rng.IntN(300)}
		w.To = w.From + rng.Uint64N(p.Duration)
		w.Step = max(1, (w.To-w.From)/uint64(w.Buckets))
		var marked []bool
		if rng.IntN(3) > 0 {
			marked = make([]bool, len(p.Sites))
			for i := range marked {
				marked[i] = rng.IntN(4) == 0
			}
		}
		want := s.Over(s.Event, w, marked)
		for range scansFirst + 1 {
			if got := s.Over(s.Event, w, marked); !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v of %+v: %+v, the first time %+v", w, s.Filter, got, want)
			}
			p.scanned.beside.Wait()
		}
		for _, a := range p.scanned.grids {
			if a.grid != nil {
				made++
			}
		}
	}
	if made == 0 {
		t.Error("no grid was made")
	}
}
