package naming

import (
	"ccagent/eventlog"
	"ccagent/symbolize/evidence"
	"ccagent/symbolize/hsname"
	"ccagent/symbolize/sources"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// C++, Rust and wrapped C names are shown as people write them, others as they are.
func TestForeignName(t *testing.T) {
	for symbol, want := range map[string]string{
		"memcpy":                            "memcpy",
		"_ZN3geo5PointIdEplERKS1_":          "geo::Point<double>::operator+",
		"_ZNSt6vectorIiSaIiEE9push_backEOi": "std::vector<int, std::allocator<int> >::push_back",
		"_RNvXs_NtCsh537bOAIRKx_3lib3geoNtB4_1PNtB4_5Shape4area": "<lib::geo::P as lib::geo::Shape>::area",
		"_ZN4core3fmt5Write10write_char17h0123456789abcdefE":     "core::fmt::Write::write_char",
		"ghczuwrapperZC0ZCmainZCMainZCsin":                       "sin",
		"_Znot_mangled":                                          "_Znot_mangled",
		"stg_upd_frame_info":                                     "stg_upd_frame",
	} {
		if got := foreignName(symbol); got != want {
			t.Errorf("%s is named %q, want %q", symbol, got, want)
		}
	}
}

// procedures is evidence of procedures alone.
type procedures map[evidence.ProcID]evidence.Procedure

func (procedures) At(uint64) (evidence.Code, bool)                   { return evidence.Code{}, false }
func (t procedures) Procedure(id evidence.ProcID) evidence.Procedure { return t[id] }

// defined are symbols of a module.
type defined map[string]bool

func (d defined) Defines(name string) bool { return d[name] }
func (defined) Begins(uint64, uint64) bool { return false }
func (defined) IsClass(string) bool        { return false }

// A procedure that GHC made is named as such, below the binding that it was made from,
// which comes first; each binding comes once.
func TestProceduresAreNamedAfterTheirSource(t *testing.T) {
	name := func(symbol string) hsname.Name {
		n, ok := hsname.Parse(symbol)
		if !ok {
			t.Fatalf("%s is no linkage name", symbol)
		}
		return n
	}
	exported := func(symbol string) evidence.Procedure {
		return evidence.Procedure{Kind: evidence.Exported, Symbol: symbol, Linkage: name(symbol), Category: eventlog.CategoryHaskell}
	}
	procs := procedures{
		1: exported("Main_zdwheavy_info"), 2: exported("Main_heavy_info"),
		3: {Kind: evidence.Noted, Symbol: "s1Fc_info", Owner: evidence.Owner{Package: "main", Module: "Main"}, Path: "heavy.go"},
		4: {Kind: evidence.Noted, Symbol: "s1Fd_info", Owner: evidence.Owner{Package: "main", Module: "Main"}, Context: 1},
		5: {Kind: evidence.Foreign, Symbol: "memcpy", Category: eventlog.CategoryForeign},
		6: {Kind: evidence.Stretch, Owner: evidence.Owner{Package: "base", Module: "GHC.Base"}, Path: "(local code before map)"},
		7: {Kind: evidence.Noted, Symbol: "s1Fe_info", Owner: evidence.Owner{Module: "Main"}, Context: 8},
		8: {Kind: evidence.Noted, Symbol: "s1Ff_info", Owner: evidence.Owner{Module: "Main"}, Context: 7}, // a crafted cycle
	}
	var out []eventlog.Binding
	b := NewBindings(func(e eventlog.Event) error { out = append(out, *e.(*eventlog.Binding)); return nil }, 10)
	n := NewNamer(b, 1, procs, nil, defined{"Main_heavy_info": true}, nil)
	for range 2 {
		for id := evidence.ProcID(1); id <= 8; id++ {
			if _, err := n.Procedure(id); err != nil {
				t.Fatal(err)
			}
		}
	}
	byID := map[uint32]eventlog.Binding{}
	var got []string
	for i, x := range out {
		if x.ID != uint32(11+i) || x.Parent != 0 && byID[x.Parent].ID == 0 {
			t.Errorf("binding %+v comes before its parent or out of order", x)
		}
		byID[x.ID] = x
		got = append(got, x.Name+"<"+byID[x.Parent].Name)
	}
	want := []string{"heavy<", "$wheavy<heavy", "heavy.go<", "heavy.(local code)<heavy", "memcpy<", "(local code before map)<", "(local code s1Fe)<", "(local code s1Ff)<"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("name<parent (-want +got):\n%s", diff)
	}
}

// Procedures whose binding is not known have a name each: by the line that their code
// begins with, and by their symbol as well where an earlier one begins with it.
func TestProceduresByLine(t *testing.T) {
	at := func(symbol string, line uint32) evidence.Procedure {
		return evidence.Procedure{
			Kind: evidence.Noted, Symbol: symbol + "_info", Owner: evidence.Owner{Package: "main", Module: "Chess"},
			Near: evidence.Position{File: 1, Line: line},
		}
	}
	procs := procedures{1: at("r5Y3", 48), 2: at("r5Y4", 48), 3: at("s1", 50), 4: at("s2", 0)}
	var got []string
	emit := func(e eventlog.Event) error {
		if b, ok := e.(*eventlog.Binding); ok {
			got = append(got, b.Name)
		}
		return nil
	}
	b := NewBindings(emit, 0)
	files := sources.NewFiles(&sources.Finder{}, sources.NewLog(emit, 0, false), func(sources.FileID) sources.Description {
		return sources.Description{Path: "src/Chess.lhs", Module: "Chess", Package: "main"}
	}, nil)
	n := NewNamer(b, 1, procs, files, defined{}, nil)
	for _, id := range []evidence.ProcID{1, 2, 3, 4, 1} {
		if _, err := n.Procedure(id); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"(local code at Chess.lhs:48)", "(local code at Chess.lhs:48, r5Y4)", "(local code at Chess.lhs:50)", "(local code s2)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
