package profile

import (
	"math"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile/interval"
	"ccagent/profile/logtest"
)

// searchLog has what samples of search are made of.
type searchLog struct {
	*logtest.Log
	dfs, again, narrow, f, other logtest.Frame
}

func newSearchLog() *searchLog {
	l := logtest.New()
	code := func(module, name string) logtest.Frame {
		return l.Code(l.Binding("main", module, name, 0), eventlog.QualityExact, eventlog.CategoryHaskell)
	}
	return &searchLog{l, code("Search", "dfs").As(eventlog.FrameReturn), code("Search", "again").As(eventlog.FrameReturn), code("Types", "narrow"), code("Curry_P", "nd_C_f"), code("Main", "main")}
}

func (l *searchLog) folded(cycle uint64) logtest.Frame {
	return logtest.Frame{Kind: eventlog.FrameFolded, Addr: cycle}
}

// Frames of search strategies are counted with those that were folded; where it is not known how many of
// those are theirs, or the stack is cut, the depth is the least that it can be, and that is said.
func TestSearchDepth(t *testing.T) {
	for _, c := range []struct {
		name    string
		sample  func(l *searchLog) eventlog.Sample
		depth   float64
		deepest uint64
		share   float64
		unsure  float64
	}{
		{"none", func(l *searchLog) eventlog.Sample { return eventlog.Sample{Node: l.Stack(l.other)} }, 0, 0, 0, 0},
		{"code of search, but no strategy", func(l *searchLog) eventlog.Sample { return eventlog.Sample{Node: l.Stack(l.f, l.narrow)} }, 0, 0, 1, 0},
		{"three", func(l *searchLog) eventlog.Sample {
			return eventlog.Sample{Node: l.Stack(l.dfs, l.again, l.dfs, l.f)}
		}, 3, 3, 1, 0},
		{"folded", func(l *searchLog) eventlog.Sample {
			return eventlog.Sample{Node: l.Stack(l.folded(1), l.dfs, l.dfs, l.f), FoldedFrames: 10}
		}, 12, 12, 1, 0},
		{"a cycle of two, one of them a strategy's", func(l *searchLog) eventlog.Sample {
			wait := l.narrow.As(eventlog.FrameReturn)
			return eventlog.Sample{Node: l.Stack(l.folded(2), l.dfs, wait, l.dfs, wait, l.f), FoldedFrames: 10}
		}, 7, 7, 1, 0},
		{"two kinds of cycles", func(l *searchLog) eventlog.Sample {
			wait := l.narrow.As(eventlog.FrameReturn)
			return eventlog.Sample{Node: l.Stack(l.folded(1), wait, wait, l.folded(1), l.dfs, l.dfs, l.f), FoldedFrames: 10}
		}, 2, 2, 1, 1},
		{"a cycle longer than the stack", func(l *searchLog) eventlog.Sample {
			return eventlog.Sample{Node: l.Stack(l.folded(9), l.dfs, l.f), FoldedFrames: 10}
		}, 1, 1, 1, 1},
		{"cut", func(l *searchLog) eventlog.Sample {
			return eventlog.Sample{Node: l.Stack(l.dfs, l.f), Stop: eventlog.StopBudget}
		}, 1, 1, 1, 1},
		{"without what was skipped, of a stack with its root", func(l *searchLog) eventlog.Sample {
			return eventlog.Sample{Node: l.Stack(l.other, logtest.Frame{Kind: eventlog.FrameSkipped}, l.other), Stop: eventlog.StopRecovered}
		}, 0, 0, 1, 0},
		{"for a thread that search only waits for", func(l *searchLog) eventlog.Sample {
			return eventlog.Sample{Node: l.Stack(l.dfs, logtest.Frame{Kind: eventlog.FrameContext}, l.other)}
		}, 0, 0, 0, 0},
	} {
		l := newSearchLog()
		l.Stack(l.f) // the program is one of KiCS2's whatever the sample has
		l.Stack(l.narrow)
		s := c.sample(l)
		s.Weight = 10
		l.SampleOf(1, s) // StopRoot is the zero value
		p := mustLoad(t, l.End())
		d := p.Select(Filter{}).Search()
		if d == nil {
			t.Errorf("%s: no search", c.name)
			continue
		}
		if math.Abs(d.Depth-c.depth) > 1e-9 || d.Deepest != c.deepest || math.Abs(d.Share-c.share) > 1e-9 || d.AtLeast != c.unsure {
			t.Errorf("%s: %+v, want %+v", c.name, d, c)
		}
	}
	if p := mustLoad(t, curryLog(false)); p.Select(Filter{}).Search() != nil {
		t.Error("a program that is none of KiCS2's has search")
	}
}

// What was folded of single samples is not kept: where the samples of a site differ in it no interval and no greatest depth is given, of the
// whole log and of a part alike.
func TestDepthOfFoldedSearch(t *testing.T) {
	for _, c := range []struct {
		folded [2]uint32 // by thread
		rough  bool
	}{{[2]uint32{10, 10}, false}, {[2]uint32{10, 1000}, true}} {
		l := newSearchLog()
		l.Stack(l.narrow)
		for i := range 100 {
			l.SampleOf(uint64(1+i), eventlog.Sample{
				Node: l.Stack(l.folded(1), l.dfs, l.dfs, l.f), FoldedFrames: c.folded[i%2], TSO: uint64(1 + i%2), Weight: 10,
			})
		}
		p := mustLoad(t, l.End())
		for _, f := range []Filter{{}, {Threads: []uint64{1}}} {
			s := p.Select(f)
			d := s.Search()
			mean := 2 + float64(c.folded[0]+c.folded[1])/2
			if d.Rough != c.rough || math.Abs(d.Depth-mean) > 1e-9 || c.rough && (d.Deepest != 0 || d.DepthSure != (interval.Interval{})) ||
				!c.rough && (d.Deepest != 12 || d.DepthSure.Low > 12 || d.DepthSure.High < 12) {
				t.Errorf("%v, %+v: %+v", c, f, d)
			}
		}
	}
}

// A function's depth is the mean of its samples that have a frame of a strategy, as the selection's.
func TestDepthByFunction(t *testing.T) {
	l := newSearchLog()
	l.Stack(l.narrow)
	for i, stack := range [][]logtest.Frame{{l.f}, {l.f}, {l.dfs, l.f}, {l.dfs, l.dfs, l.dfs, l.f}} {
		l.SampleOf(uint64(1+i), eventlog.Sample{Node: l.Stack(stack...), Weight: 10})
	}
	s := mustLoad(t, l.End()).Select(Filter{})
	if d := s.Search(); d.Depth != 2 {
		t.Errorf("%+v", d)
	}
	rows := s.Costs(nil).Rows
	if len(rows) != 1 || rows[0].Depth != 2 || rows[0].Own != 40 {
		t.Errorf("%+v", rows)
	}
}
