package hsname

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Z-encoded names decode to what was encoded, and others are refused.
func TestDecode(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"zpzp", "++"}, {"GHCziBase", "GHC.Base"}, {"zdwheavy", "$wheavy"}, {"Z0T", "()"}, {"Z3T", "(,,)"},
		{"Z1H", "(# #)"}, {"Z2H", "(#,#)"}, {"ZMZN", "[]"}, {"ZC", ":"}, {"foozq", "foo'"}, {"z3b1U", "α"},
		{"ghczmprim", "ghc-prim"}, {"zzZZ", "zZ"}, {"az0f7Ub", "a÷b"}, {"z2295U", "⊕"}, {"plain", "plain"},
		{"zdfShowZLz2cUZR", "$fShow(,)"},
	} {
		got, ok := Decode(c.in)
		if !ok || got != c.want {
			t.Errorf("Decode(%q) = %q, %v; want %q", c.in, got, ok, c.want)
		}
	}
	for _, bad := range []string{"z", "Z", "zA", "Z9", "Z1T", "Z0H", "z12", "zffU", "z110000U", "z0d800U", "Z99999999999T"} {
		if got, ok := Decode(bad); ok || got != bad {
			t.Errorf("Decode(%q) = %q, %v; want it refused", bad, got, ok)
		}
	}
}

// Linkage names of every release are taken apart into package, module and name.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Name
	}{
		{"base_GHCziBase_zpzp_info", Name{"base", "base", "GHC.Base", "++", KindInfo, false}},
		{"Main_zdwheavy_info", Name{"", "main", "Main", "$wheavy", KindInfo, false}},
		{"containerszm0zi6zi4zi1_DataziMapziStrictziInternal_insertWith_info", Name{"containers-0.6.4.1", "containers-0.6.4.1", "Data.Map.Strict.Internal", "insertWith", KindInfo, false}},
		{"vectorzm0zi13zi0zi0zmK4w3TgjUvU8Q2mBqZZ1c_DataziVector_map_info", Name{"vector-0.13.0.0-K4w3TgjUvU8Q2mBqZ1c", "vector-0.13.0.0", "Data.Vector", "map", KindInfo, false}},
		{"alexzm3zi2zminplacezmalex_Scan_go_info", Name{"alex-3.2-inplace-alex", "alex-3.2", "Scan", "go", KindInfo, false}},
		{"ghczmprim_GHCziTuple_Z2T_con_info", Name{"ghc-prim", "ghc-prim", "GHC.Tuple", "(,)", KindConInfo, false}},
		{"ZCMain_main_closure", Name{"", "main", ":Main", "main", KindClosure, false}},
		{"Main_go_slow", Name{"", "main", "Main", "go", KindSlow, false}},
		{"base_GHCziEventziManager_closeFdzuzuzdszdwgo1_info", Name{"base", "base", "GHC.Event.Manager", "closeFd__$s$wgo1", KindInfo, false}},
		{"_Main_sat_s2VX_entry", Name{"", "main", "Main", "sat", KindEntry, false}},
		{"_Main_zdlzdwfrom_g2VY_entry", Name{"", "main", "Main", "$l$wfrom", KindEntry, false}},
		{"_base_GHCziBase_go_s1_info", Name{"base", "base", "GHC.Base", "go", KindInfo, false}},
		{"s1Fc_info", Name{Name: "s1Fc", Kind: KindInfo, Internal: true}},
		{".Lc1Fx_info", Name{Name: "c1Fx", Kind: KindInfo, Internal: true}},
		{"block_c1HX_info", Name{Name: "c1HX", Kind: KindInfo, Internal: true}},
		{"r4ed_entry", Name{Name: "r4ed", Kind: KindEntry, Internal: true}},
		{"Main_Shape_closure_tbl", Name{"", "main", "Main", "Shape", KindClosures, false}},
	} {
		got, ok := Parse(c.in)
		if !ok || got != c.want {
			t.Errorf("Parse(%q) = %+v, %v\nwant %+v", c.in, got, ok, c.want)
		}
	}
	for _, c := range []string{"stg_upd_frame_info", "get_info", "memcpy", "", "_info", "my_c_info", "evacuate", "hs_main", "_my_entry", "_Foo_entry", "z_Main_x_info"} {
		if got, ok := Parse(c); ok {
			t.Errorf("Parse(%q) = %+v; it is no name of GHC's", c, got)
		}
	}
}

// Names that GHC makes are explained by the binding that they come from.
func TestExplain(t *testing.T) {
	for _, c := range []struct{ in, source, words string }{
		{"heavy", "heavy", ""},
		{"++", "++", ""},
		{"$wheavy", "heavy", "worker of"},
		{"$w$sgo5", "go5", "worker of the specialisation of"},
		{"$WRect", "Rect", "wrapper of constructor"},
		{"$fShowShape", "", "dictionary of"},
		{"$fShowShape5", "", "part of"},
		{"$fShowShape_$cshow", "show", "code of"},
		{"$fOrd[]_$ccompare1", "compare", "code of"},
		{"$fApplicativeIO_$cliftA2", "liftA2", "code of"},
		{"$fBinary_$s$cget", "get", "specialisation of"},
		{"$fShow(,)_$sgo1", "", "specialisation of the go1, local to"},
		{"$w$cshowsPrec", "showsPrec", "worker of the instance method"},
		{"$dmfoldr", "foldr", "default method"},
		{"$p1Exception", "Exception", "superclass of"},
		{"insert_$sgo5", "insert", "specialisation of go5, local to"},
		{"$sinsertWith_$s$wgo8", "insertWith", "specialisation of the worker of go8, local to the specialisation of"},
		{"closeFd__$s$wgo1", "closeFd_", "specialisation of the worker of go1, local to"},
		{"lvl12", "", "constant expression floated to the top"},
		{"poly_go16", "go16", "polymorphic local function of"},
		{"$trModule", "", "module's run-time identity"},
		{"$con2tag_T", "T", "constructor numbers of"},
		{"<$>", "<$>", ""},
		{"$", "$", ""},
	} {
		got := Explain(c.in)
		if got.Source != c.source || got.Words != c.words {
			t.Errorf("Explain(%q) = %q of %q; want %q of %q", c.in, got.Words, got.Source, c.words, c.source)
		}
	}
}

// Instance names are written as in source.
func TestInstance(t *testing.T) {
	own := func(s string) bool { return s == "HasArea" }
	for in, want := range map[string]string{
		"EqSet": "Eq Set", "Show(,)": "Show (,)", "HasAreaShape": "HasArea Shape", "MonadStateT": "MonadStateT",
		"Unheard": "Unheard", "Eq": "Eq", "": "", "OrdAgToken": "Ord AgToken", "Show[]": "Show []",
	} {
		if got := Instance(in, own); got != want {
			t.Errorf("Instance(%q) = %q, want %q", in, got, want)
		}
	}
}

// Decoding never grows a name, and refuses without changing it.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"zpzp", "Z3T", "Z2H", "z3b1U", "zz", "Z", "z0ffU"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, ok := Decode(s)
		if !ok && d != s {
			t.Fatalf("refused %q but changed it to %q", s, d)
		}
		if ok && utf8.ValidString(d) && len(d) > 8*len(s)+maxTuple {
			t.Fatalf("%q grew to %d bytes", s, len(d))
		}
	})
}

// Decode is the inverse of Encode.
func FuzzEncode(f *testing.F) {
	for _, s := range []string{"++", "$wgo", "(,,)", "(# #)", "foo'", "⊕", "zZ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		if d, ok := Decode(Encode(s)); !ok || d != s {
			t.Fatalf("Decode(Encode(%q)) = %q, %v", s, d, ok)
		}
	})
}

// A name that is refused comes back empty.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"base_GHCziBase_zpzp_info", "Main_zdwheavy_info", "s1Fc_info", ".Lc1X_info", "a_B_c_con_info"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, ok := Parse(s)
		if !ok {
			if n != (Name{}) {
				t.Fatalf("refused %q but returned %+v", s, n)
			}
			return
		}
		if n.Name == "" || (n.Module == "") != n.Internal || strings.HasPrefix(s, "stg_") {
			t.Fatalf("Parse(%q) = %+v", s, n)
		}
		Explain(n.Name)
	})
}
