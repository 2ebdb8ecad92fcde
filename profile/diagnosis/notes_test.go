package diagnosis

import (
	"strings"
	"testing"
)

// The remedy for missing source notes fits the kind of package: the program, a library,
// one that comes with GHC, or one of GHC's own.
func TestNotesRemedy(t *testing.T) {
	for pkg, want := range map[string][]string{
		"main":                          {"ghc -g3", "cabal build --ghc-options=-g3"},
		"vector-0.13.0.0":               {"  package vector\n    ghc-options: -g3", "    vector: -g3"},
		"unordered-containers-0.2.19.1": {"package unordered-containers\n"},
		"containers-0.6.4.1":            {"constraints: containers source", "extra-deps: [containers-0.6.4.1]"},
		"base":                          {"base comes with GHC: ", "+debug_info"},
		"base-4.18.2.1":                 {"+debug_info"},
	} {
		got := NotesRemedy(pkg)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: no %q in\n%s", pkg, w, got)
			}
		}
	}
	if strings.Contains(NotesRemedy("vector-0.13.0.0"), "constraints") {
		t.Error("a package that does not come with GHC needs no constraint")
	}
	got := NotesRemedy("text-1.2.5.0", "vector-0.13.0.0", "base", "ghc-prim")
	const want = `cabal.project:
  package text
    ghc-options: -g3
  package vector
    ghc-options: -g3
  constraints: text source
stack.yaml:
  ghc-options:
    text: -g3
    vector: -g3
  extra-deps: [text-1.2.5.0]
base, ghc-prim come with GHC: ` + ghcNotes
	if got != want {
		t.Errorf("of several packages:\n%s\nwant:\n%s", got, want)
	}
}

// The package of a shared library is recognised in every naming scheme of GHC's, and only
// in those.
func TestSharedPackage(t *testing.T) {
	for name, want := range map[string]string{
		"libHScontainers-0.6.4.1-ghc9.0.2.so":                               "containers-0.6.4.1",
		"/usr/lib/libHScontainers-0.7-inplace-ghc9.10.3.so":                 "containers-0.7",
		"libHStransformers-compat-0.6.6-4gHuCBhj4Y85EW694aldIg-ghc9.0.2.so": "transformers-compat-0.6.6",
		"libHSbase64-bytestring-1.2.1.0-1a2b-ghc9.8.4.so":                   "base64-bytestring-1.2.1.0",
		"libHSrts_thr-ghc9.0.2.so":                                          "rts", "libHSrts-1.0.2_thr_l-ghc9.10.3.so": "rts-1.0.2",
		"libHSrts-ghc9.0.2.so": "rts", "libc.so.6": "", "containers-0.7-ghc9.so": "",
	} {
		if got, ok := sharedPackage(name); got != want || ok != (want != "") {
			t.Errorf("%s is of %q, want %q", name, got, want)
		}
	}
}
