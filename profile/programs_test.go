package profile_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
)

// Two programs in one log have a Main.main each, which say whose they are; what libraries give
// both is one element. A program's samples can be chosen, whatever code they hit.
func TestElementsBelongToPrograms(t *testing.T) {
	l := logtest.New()
	l.Write(0, &eventlog.Module{ID: 2, Path: "/srv/server", Size: 1})
	const other = 100
	main := l.Binding("main", "Main", "main", 0)
	l.Symbol(&eventlog.Binding{ID: other, Symbol: "Main_main_info", Package: "main", Module: "Main", Name: "main", Category: eventlog.CategoryHaskell, Program: 2})
	l.Symbol(&eventlog.Binding{ID: other + 1, Symbol: "Main_a_info", Package: "main", Module: "Main", Name: "a", Category: eventlog.CategoryHaskell, Program: 1})
	mine := l.Code(other+1, eventlog.QualityExact, eventlog.CategoryHaskell)
	unknown := l.Code(main, eventlog.QualityExact, eventlog.CategoryHaskell) // as older logs have it
	shared := l.Code(l.Binding("base", "GHC.Base", "map", 0), eventlog.QualityExact, eventlog.CategoryHaskell)
	l.Symbol(&eventlog.Locations{Module: 2, Locations: []eventlog.Location{
		{Addr: 0x1000, Binding: other, Quality: eventlog.QualityExact, Category: eventlog.CategoryHaskell},
	}})
	theirs := logtest.Frame{Kind: eventlog.FrameReturn, Module: 2, Addr: 0x1000}
	for i, stack := range [][]logtest.Frame{{mine}, {mine, shared}, {theirs}, {theirs, shared}, {theirs, shared}, {unknown}} {
		l.Sample(uint64(i), 10, l.Stack(stack...))
	}
	p := load(t, l.End())
	if d := cmp.Diff(map[uint32]string{1: "nbody", 2: "server"}, p.Programs()); d != "" {
		t.Errorf("programs: %s", d)
	}
	names := func(f profile.Filter) map[string]uint64 {
		out := map[string]uint64{}
		for _, r := range p.Select(f).Hot(profile.LevelBinding).Rows {
			out[r.Element.Name] = r.InclusiveWeight
			if want := r.Element.Plain(); r.Element.Program != "" && r.Element.Name != want+" ["+r.Element.Program+"]" {
				t.Errorf("%q of %q is plainly %q", r.Element.Name, r.Element.Program, want)
			}
		}
		return out
	}
	for _, c := range []struct {
		filter profile.Filter
		want   map[string]uint64
	}{
		{profile.Filter{}, map[string]uint64{"Main.a [nbody]": 20, "Main.main [server]": 30, "Main.main": 10, "GHC.Base.map": 30}},
		{profile.Filter{Programs: []string{"server"}}, map[string]uint64{"Main.main [server]": 30, "GHC.Base.map": 20}},
		{profile.Filter{Programs: []string{"/home/u/nbody"}}, map[string]uint64{"Main.a [nbody]": 20, "Main.main": 10, "GHC.Base.map": 30}},
		{profile.Filter{Focus: []*regexp.Regexp{regexp.MustCompile(`\[server\]`)}}, map[string]uint64{"Main.main [server]": 30, "GHC.Base.map": 20}},
	} {
		got := names(c.filter)
		if c.filter.Programs != nil && c.filter.Programs[0] == "/home/u/nbody" {
			got["GHC.Base.map"] = c.want["GHC.Base.map"] // its code is in that module for all
			delete(got, "Main.main [server]")
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%+v: %s", c.filter, d)
		}
	}
}
