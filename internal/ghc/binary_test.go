package ghc

import "testing"

func TestParseLibrary(t *testing.T) {
	for name, want := range map[string]Library{
		"libHSrts-ghc9.0.2.so":               {"rts", "9.0.2", true, "rts_dyn"},
		"libHSrts_thr_debug-ghc9.0.2.so":     {"rts_thr_debug", "9.0.2", true, "rts_thr_debug_dyn"},
		"libHSrts-1.0.2_thr-ghc9.8.1.so":     {"rts-1.0.2_thr", "9.8.1", true, "rts_thr_dyn"},
		"libHSbase-4.15.1.0-ghc9.0.2.so":     {"base-4.15.1.0", "9.0.2", false, ""},
		"libHSrtsopts-1.0-4f2a-ghc9.6.so":    {"rtsopts-1.0-4f2a", "9.6", false, ""},
		"libHSmy-ghc-2.1-inplace-ghc10.1.so": {"my-ghc-2.1-inplace", "10.1", false, ""},
	} {
		if got, ok := ParseLibrary(name); !ok || got != want {
			t.Errorf("%s is %+v, %v; want %+v", name, got, ok, want)
		}
	}
	for _, name := range []string{"", "libc.so.6", "libHSrts-ghc.so", "libHSbase-4.15.1.0.so", "libHS-ghc9.0.2.so.1"} {
		if got, ok := ParseLibrary(name); ok {
			t.Errorf("%q is taken for GHC's library %+v", name, got)
		}
	}
}

func TestVersionsInBinaries(t *testing.T) {
	if v := CommentVersion([]byte("GCC: (Debian 12)\x00GHC 9.0.2\x00")); v != "9.0.2" {
		t.Errorf(".comment has version %q, want 9.0.2", v)
	}
	if v := CommentVersion([]byte("GCC: no GHC 9.0.2 at the beginning")); v != "" {
		t.Errorf(".comment without GHC's own entry has version %q", v)
	}
	if v := ProducerVersion("The Glorious Glasgow Haskell Compilation System 9.10.3"); v != "9.10.3" {
		t.Errorf("producer has version %q, want 9.10.3", v)
	}
	if v := ProducerVersion("GNU C17 12.2.0"); v != "" {
		t.Errorf("another compiler's producer has version %q", v)
	}
}

// A version that parses prints as what it is parsed from begins with.
func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{"9.0.2", "8.10.7", "9.12.20240101", "10.1", "", "9", "9.+2", "9.99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseVersion(s)
		if err != nil {
			if v != (Version{}) {
				t.Errorf("%q gives both %v and %v", s, v, err)
			}
			return
		}
		again, err := ParseVersion(v.String())
		if err != nil || again != v {
			t.Errorf("%q is %v, which parses as %v, %v", s, v, again, err)
		}
		if l, _ := LayoutOf(s, true, true); l.TSOID == 0 {
			t.Errorf("%q has no layout", s)
		}
	})
}

// What is taken from a library's name is part of it.
func FuzzParseLibrary(f *testing.F) {
	for _, s := range []string{"libHSrts_thr-ghc9.0.2.so", "libHSrts-1.0.2_thr-ghc9.8.1.so", "libHSbase-4.15.1.0-ghc9.0.2.so", "libHS-ghc.so", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, ok := ParseLibrary(s)
		if ok && "libHS"+l.Unit+"-ghc"+l.Version+".so" != s {
			t.Errorf("%q is taken apart as %+v", s, l)
		}
		if l.RTS != (l.Way != "") {
			t.Errorf("%q: %+v has a way without being the run-time system, or none", s, l)
		}
	})
}
