package source_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/profile/source"
)

// coreLog is a log with the Core of a worker, in which another binding is
// inlined. Of 100 samples 40 are in the inlined code, 30 in the loop around it,
// 10 in a closure within it, 5 in the worker at no note of its text, and 15 in
// a binding without Core.
func coreLog() *logtest.Log {
	l := logtest.New()
	file := l.File("src/Loop.hs", "")
	loop := l.Binding("main", "Loop", "loop", 0)
	worker := l.Binding("main", "Loop", "$wloop", loop)
	local := l.Binding("main", "Loop", "loop.f", loop)
	step := l.Binding("main", "Loop", "step", 0)
	bare := l.Binding("main", "Loop", "bare", 0)
	sLoop := l.Span(file, 3, 1, 5, 20, loop)
	sStep := l.Span(file, 8, 1, 8, 30, step)
	sAdd := l.Span(file, 8, 12, 8, 30, step)
	sFar := l.Span(file, 20, 1, 20, 9, loop)
	sBare := l.Span(file, 30, 1, 30, 9, bare)
	l.Core(worker, file, "$wloop", `$wloop
  = \ n a ->
      src<src/Loop.hs:(3,1)-(5,20)>
      case n of {
        0# -> a;
        __DEFAULT ->
          let { f = src<src/Loop.hs:8:1-30> \ x -> src<src/Loop.hs:8:12-30> x } in
          src<src/Loop.hs:8:1-30>
          $wloop (src<src/Loop.hs:8:12-30> +# n a)
      }
`,
		eventlog.CoreNote{Span: sLoop, Line: 4, Col: 7, EndLine: 10, EndCol: 8},
		eventlog.CoreNote{Span: sStep, Line: 7, Col: 43, EndLine: 7, EndCol: 77},
		eventlog.CoreNote{Span: sAdd, Line: 7, Col: 75, EndLine: 7, EndCol: 76},
		eventlog.CoreNote{Span: sStep, Line: 9, Col: 11, EndLine: 9, EndCol: 52},
		eventlog.CoreNote{Span: sAdd, Line: 9, Col: 44, EndLine: 9, EndCol: 51},
	)
	cause := func(span, distance uint32) eventlog.Cause { return eventlog.Cause{Span: span, Distance: distance} }
	at := func(n int, f logtest.Frame) {
		for range n {
			l.Sample(1, 1, l.Stack(f))
		}
	}
	at(40, l.Enclosed(worker, nil, cause(sStep, 0), cause(sAdd, 0), cause(sLoop, 1)))
	at(30, l.Enclosed(worker, nil, cause(sLoop, 0)))
	at(10, l.Enclosed(local, []uint32{worker}, cause(sFar, 0), cause(sLoop, 2)))
	at(5, l.Enclosed(worker, nil, cause(sFar, 0)))
	at(15, l.Enclosed(bare, nil, cause(sBare, 0)))
	return l
}

// An element's Core has the samples on the lines of their nearest notes, and a problem is
// stated where there is no Core.
func TestCore(t *testing.T) {
	p := load(t, coreLog().End())
	s := p.Select(profile.Filter{})
	element := func(level profile.Level, name string) *profile.Element {
		for i, e := range p.Elements(level) {
			if e.Name == name {
				return &p.Elements(level)[i]
			}
		}
		t.Fatalf("no %v %s", level, name)
		return nil
	}
	show := func(v *source.CoreView) (out []string) {
		for _, b := range v.Bindings {
			out = append(out, fmt.Sprintf("%s own=%v %.2f with %.2f", b.Name, b.Own, b.Share, b.With))
			for _, l := range b.Lines {
				if l.Samples > 0 || l.Of {
					out = append(out, fmt.Sprintf("%d: %.2f of=%v", l.Number, l.Share, l.Of))
				}
			}
		}
		return out
	}
	for _, c := range []struct {
		e    *profile.Element
		want []string
	}{
		// Inlined code that was copied is on the lines of both copies.
		{element(profile.LevelBinding, "Loop.step"), []string{"Loop.$wloop own=false 0.85 with 0.40", "1: 0.05 of=false", "4: 0.40 of=false", "7: 0.40 of=true", "9: 0.40 of=true"}},
		{element(profile.LevelBinding, "Loop.loop"), []string{"Loop.$wloop own=true 0.85 with 0.85", "1: 0.05 of=false", "4: 0.40 of=true", "5: 0.00 of=true", "6: 0.00 of=true", "7: 0.40 of=false", "8: 0.00 of=true", "9: 0.40 of=false", "10: 0.00 of=true"}},
		{element(profile.LevelSpan, "src/Loop.hs:8:12-8:30"), []string{"Loop.$wloop own=false 0.85 with 0.40", "1: 0.05 of=false", "4: 0.40 of=false", "7: 0.40 of=true", "9: 0.40 of=true"}},
		{element(profile.LevelModule, "Loop"), nil},
	} {
		v := source.CoreOf(s, c.e)
		if c.want == nil {
			if len(v.Bindings) != 1 || !v.Bindings[0].Own || v.Bindings[0].Samples != 85 {
				t.Errorf("%s: %+v", c.e.Name, v)
			}
			continue
		}
		if d := cmp.Diff(c.want, show(v)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.e.Name, d)
		}
	}
	if v := source.CoreOf(s, element(profile.LevelBinding, "Loop.bare")); v.Problem == "" || len(v.Bindings) != 0 {
		t.Errorf("a binding without Core has %+v", v)
	}
	if v := source.CoreOf(nbody(t).Select(profile.Filter{}), element(profile.LevelBinding, "Loop.loop")); v.Problem == "" {
		t.Error("a log without Core has a view of it")
	}
}
