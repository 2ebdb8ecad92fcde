package ghc

import "testing"

// Descriptions of constructors are split where the module's name ends.
func TestSplitConstructor(t *testing.T) {
	for s, want := range map[string][3]string{
		"main:Main.Node":              {"main", "Main", "Main.Node"},
		"ghc-prim:GHC.Types.I#":       {"ghc-prim", "GHC.Types", "GHC.Types.I#"},
		"ghc-prim:GHC.Types.:":        {"ghc-prim", "GHC.Types", "GHC.Types.:"},
		"ghc-prim:GHC.Tuple.(,)":      {"ghc-prim", "GHC.Tuple", "GHC.Tuple.(,)"},
		"x-1.0:A.B'.:.:":              {"x-1.0", "A.B'", "A.B'.:.:"},
		"containers-0.6:Data.Map.Bin": {"containers-0.6", "Data.Map", "Data.Map.Bin"},
		"":                            {"", "", ""},
		":":                           {"", "", ""},
		"a:":                          {"a", "", ""},
		"nothing":                     {"", "", "nothing"},
		"a:M.":                        {"a", "", "M."},
	} {
		pkg, module, name := SplitConstructor(s)
		if got := [3]string{pkg, module, name}; got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}
