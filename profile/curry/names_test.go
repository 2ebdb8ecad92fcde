package curry

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Names as KiCS2 0.2 to 3 writes them.
func TestFunction(t *testing.T) {
	for _, c := range []struct {
		haskell, curry string
		version        Version
	}{
		{"d_C_last", "last", Deterministic},
		{"nd_C_perm", "perm", NonDeterministic},
		{"nd_C_perm.go", "perm.go", NonDeterministic},
		{"external_d_C_prim_showTerm", "prim_showTerm", Deterministic},
		{"d_OP_plus_plus", "++", Deterministic},
		{"nd_OP_dollar_bang_bang", "$!!", NonDeterministic},
		{"nd_OP_eq_colon_eq", "=:=", NonDeterministic},
		{"d_OP_main_dot_putStrFlush_dot_2", "main.putStrFlush.2", Deterministic},
		{"d_OP_sort_dot___hash_lambda7", "sort._#lambda7", Deterministic},
		{"d_OP_sort_dot_uscore_hash_lambda7", "sort._#lambda7", Deterministic},
		{"d_OP_uscore_inst_hash_Prelude_dot_Eq_hash_Tree", "_inst#Prelude.Eq#Tree", Deterministic},
		{"d_OP__case_12", "_case_12", Deterministic},
		{"d_OP__casePT_22", "_casePT_22", Deterministic},
		{"d_C__case_0", "_case_0", Deterministic},
		{"d_OP_ampersand_ampersand", "&&", Deterministic},
		{"d_OP_amp_amp", "&&", Deterministic},
		{"nd_OP_main_dot___hash_lambda1", "main._#lambda1", NonDeterministic},
		{"d_OP_f_dot_check_dot_99_dot___hash_selFP17_hash_ns", "f.check.99._#selFP17#ns", Deterministic},
		{"d_OP_uscore_impl_hash_enumFromTo_hash_Prelude_dot_Enum_hash_Prelude_dot_Int", "_impl#enumFromTo#Prelude.Enum#Prelude.Int", Deterministic},
		{"nd_OP_uscore_super_hash_Prelude_dot_Fractional_hash_Prelude_dot_Num", "_super#Prelude.Fractional#Prelude.Num", NonDeterministic},
		{"global_d_C_counter", "counter", Deterministic},
		{"Guard_Nat", "Nat (guard)", Neither},
		{"d_C_it's", "it's", Deterministic},
		{"Choice_C_Bool", "Bool (choice)", Neither},
		{"Choices_OP_List", "[] (variable or choice of several)", Neither},
		// No names of KiCS2's.
		{"d_arith", "d_arith", Neither},
		{"d_C_", "d_C_", Neither},
		{"main", "main", Neither},
		{"", "", Neither},
	} {
		if got, v := Function(c.haskell); got != c.curry || v != c.version {
			t.Errorf("%s: %q %d, want %q %d", c.haskell, got, v, c.curry, c.version)
		}
	}
}

func TestConstructor(t *testing.T) {
	for _, c := range []struct {
		haskell, curry string
		role           Role
		ok             bool
	}{
		{"OP_Cons", ":", Value, true},
		{"OP_List", "[]", Value, true},
		{"OP_Tuple3", "(,,)", Value, true},
		{"OP_Tuple999999999", "Tuple999999999", Value, true},
		{"C_Just", "Just", Value, true},
		{"HO_C_State", "State", Value, true},
		{"Choice_OP_List", "[]", Choice, true},
		{"Choices_C_Bool", "Bool", Choices, true},
		{"Fail_C_Bool", "Bool", Failure, true},
		{"Guard_Nat", "Nat", Guard, true},
		{"Just", "Just", Value, false},
	} {
		if got, r, ok := Constructor(c.haskell); got != c.curry || r != c.role || ok != c.ok {
			t.Errorf("%s: %q %v %v, want %q %v %v", c.haskell, got, r, ok, c.curry, c.role, c.ok)
		}
	}
}

func TestMakes(t *testing.T) {
	for name, want := range map[string]string{
		"choiceCons (instance NonDet (OP_List a))": "[] (choice)",
		"choicesCons (instance NonDet C_Bool)":     "Bool (variable or choice of several)",
		"$fNonDetC_Bool_$cfailCons":                "Bool (failure)",
		"$fNonDetOP_List_$cguardCons":              "[] (guard)",
		"Bool (choice)":                            "Bool (choice)",
		"Choice_C_Bool":                            "Bool (choice)",
		"Guard_Nat":                                "Nat (guard)",
		"try (instance NonDet C_Bool)":             "",
		"choiceCons (instance Unifiable C_Bool)":   "",
		"choiceCons (instance NonDet":              "",
		"$fNonDetC_Bool_$ctry":                     "",
		"$fNonDetC_Bool":                           "",
		"a b (choice)":                             "",
		"C_True":                                   "",
		"perm (nd)":                                "",
		"choiceCons":                               "",
		"":                                         "",
	} {
		if got, role, ok := Makes(name); got != want || ok != (want != "") || ok == (role == Value) {
			t.Errorf("%q makes %q %v %v, want %q", name, got, role, ok, want)
		}
	}
}

func TestModule(t *testing.T) {
	for haskell, curry := range map[string]string{"Curry_Prelude": "Prelude", "Data.Curry_Set": "Data.Set", "Curry_Trace_Prelude": "Prelude", "Curry_": "", "Main": "", "Curry_Data.Set": ""} {
		if got, ok := Module(haskell); ok != (curry != "") || ok && got != curry {
			t.Errorf("%s: %q %v", haskell, got, ok)
		}
	}
}

func TestSearch(t *testing.T) {
	for _, c := range []struct{ module, name, part string }{
		{"Types", "narrow", choices},
		{"Types", "narrows", choices},
		{"ID", "narrowID", supply},
		{"ID", "lookupDecisionID", decisions},
		{"Basics", "choice", choices},
		{"Types", "=:=", constraints},
		{"Types", "=.=", constraints},
		{"Types", "=.<=", constraints},
		{"Types", "nfChoice.go", normal},
		{"Types", "$!!", normal},
		{"Search", "printDFS", strategies},
		{"IDSupply", "insert (specialised)", supply},
		{"Data.Map.Internal", "balanceL", stored},
		{"Data.Map", "union", stored},
		{"Utils.Containers.Internal.PtrEquality", "ptrEq", stored},
		{"Solver", "anything", constraints},
		{"Types", "somethingElse", others},
		{"Types", "lazyMatch", constraints},
		{"Types", "constrain", constraints},
		{"Basics", "nd_dollar_bang_match", normal},
		{"MonadList", "+++", strategies},
		{"PrimTypes", "try (instance NonDet Nat)", inspected},
		{"Curry_Prelude", "try (instance NonDet (OP_List a))", inspected},
		{"Curry_Prelude", "generate (instance Generable C_Bool)", generators},
		{"Curry_Prelude", "(instance UnifiableC_Bool)", others},
	} {
		if !Searches(c.module, c.name) || Part(c.module, c.name) != c.part {
			t.Errorf("%s.%s: %v, %s, want %s", c.module, c.name, Searches(c.module, c.name), Part(c.module, c.name), c.part)
		}
	}
	for _, other := range [][2]string{{"Curry_Prelude", "d_C_map"}, {"Data.Types", "narrow"}, {"Data.Mapping", "insert"}, {"Data.IORef", "readIORef"}, {"PrimTypes", "d_C_prim_eqNat"}, {"Curry_Prelude", "show (instance Show C_Bool)"}} {
		if Searches(other[0], other[1]) {
			t.Errorf("%v is taken for code of search", other)
		}
	}
}

// Whatever the name, decoding ends, and keeps what follows the binding.
func FuzzFunction(f *testing.F) {
	for _, s := range []string{"d_OP_plus_plus", "nd_C_perm.go (instance Eq a)", "d_OP____", "HO_OP_Tuple9", "Guard_OP__case_", "d_OP_\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, v := Function(s)
		own, local := cut(s)
		if _, role, _ := Constructor(own); v == Neither && role == Value && name != s {
			t.Errorf("%q is no function, and came back as %q", s, name)
		}
		if v != Neither && !strings.HasSuffix(name, local) {
			t.Errorf("%q lost %q: %q", s, local, name)
		}
		if utf8.ValidString(s) && !utf8.ValidString(name) {
			t.Errorf("%q became %q, which is no text", s, name)
		}
		Constructor(s)
		if made, role, ok := Makes(s); ok && (role == Value || !strings.HasSuffix(made, "("+role.String()+")")) {
			t.Errorf("%q makes %q, %v", s, made, role)
		}
		Part("", s)
	})
}
