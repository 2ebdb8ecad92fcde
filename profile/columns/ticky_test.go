package columns

import (
	"testing"

	"ccagent/eventlog"
)

// The module, binding and kind of closure are recognised in each form of GHC's ticky
// counter names.
func TestTickyNames(t *testing.T) {
	for name, want := range map[string][3]string{
		"Main.rev{v rhD} (fun)":                         {"Main", "rev", "fun"},
		"Main.$wj{v r3IK} (fun)":                        {"Main", "j", "fun"},
		"$snth{v r3IW} (Main) (fun)":                    {"Main", "nth", "fun"},
		"$l$wpick_g3Pa{v} (Main) (fun)":                 {"Main", "pick", "fun"},
		"Main.main_$s$wgo{v r3IM} (fun)":                {"Main", "go", "fun"},
		":Main.main{v 01D} (fun)":                       {"Main", "main", "fun"},
		"sat_s4Xy{v} (Data.Map.Internal) (thk) in r3IT": {"Data.Map.Internal", "sat", "thk"},
		"Data.Map.Internal.insert_go{v r9} (fun)":       {"Data.Map.Internal", "insert_go", "fun"},
		"go1{v} (Main) (LNE) in r3IT":                   {"Main", "go1", "LNE"},
		"Main.:|{v r1} (con: Main.:|)":                  {"Main", ":|", "con"},
		"Main..{v r1} (fun)":                            {"Main", ".", "fun"},
		"Data.Function.&&.{v r1} (fun,se)":              {"Data.Function", "&&.", "fun"},
		"main:Main.f{v r2} (fun)":                       {"", "main:Main.f", "fun"},
		"TOP":                                           {"", "TOP", ""},
		"":                                              {"", "", ""},
		"{}((":                                          {"", "{}((", ""},
	} {
		c := TickyCounter{TickyCounterDef: eventlog.TickyCounterDef{Name: name}}
		if m, b, k := c.Source(); m != want[0] || b != want[1] || k != want[2] {
			t.Errorf("%q is %q %q %q, want %q", name, m, b, k, want)
		}
	}
}

// The parts of a ticky counter's name are never longer than the name.
func FuzzTickyName(f *testing.F) {
	f.Add("Main.main_$s$wgo{v r3IM} (fun)")
	f.Add("sat_s4Xy{v} (Data.Map.Internal) (thk) in r3IT")
	f.Fuzz(func(t *testing.T, name string) {
		m, b, _ := parseTickyName(name)
		if len(m)+len(b) > len(name) {
			t.Errorf("%q is %q %q", name, m, b)
		}
	})
}
