package profile

import (
	"testing"

	"ccagent/eventlog"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
)

// The interpreter's code and its frames are (bytecode), what else the STG machine has is not.
func TestBytecode(t *testing.T) {
	l := logtest.New()
	code := func(name string, c eventlog.Category) logtest.Frame {
		return l.Code(l.Function(name, c), eventlog.QualityExact, c)
	}
	wait := code("stg_ctoi_R1p", eventlog.CategorySTG).As(eventlog.FrameRetBCO)
	f := l.Code(l.Binding("main", "M", "f", 0), eventlog.QualityExact, eventlog.CategoryHaskell)
	own := l.Code(l.Binding("main", "M", "stg_ctoi_", 0), eventlog.QualityExact, eventlog.CategoryHaskell) // of a program that calls it so
	l.Sample(1, 1, l.Stack(code("interpretBCO", eventlog.CategoryRTS)))
	l.Sample(2, 10, l.Stack(wait, f))
	l.Sample(3, 100, l.Stack(code("stg_ap_p", eventlog.CategorySTG)))
	l.Sample(4, 1000, l.Stack(own))
	p := mustLoad(t, l.End())
	inclusive := map[string]uint64{}
	for _, r := range p.Select(Filter{}).Hot(LevelBinding).Rows {
		inclusive[r.Element.Name] = r.InclusiveWeight
	}
	for name, want := range map[string]uint64{"(bytecode)": 11, "M.f": 10, "(STG)": 100, "M.stg_ctoi_": 1000} {
		if inclusive[name] != want {
			t.Errorf("%s: %d, want %d, in %v", name, inclusive[name], want, inclusive)
		}
	}
	if f := p.FrameOf(columns.PlaceID(p.Nodes.Place[p.Sites[1].Node])); f.Name != "M.f" {
		t.Errorf("the second sample is in %s", f.Name)
	}
	if f := p.FrameOf(columns.PlaceID(p.Nodes.Place[p.Nodes.Parent[p.Sites[1].Node]])); f.Name != "(bytecode)" || f.Kind != KindCategory {
		t.Errorf("its caller is %+v", f)
	}
}
