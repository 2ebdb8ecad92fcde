package text

import (
	"strings"
	"testing"
)

func TestNotesRemedy(t *testing.T) {
	for pkg, want := range map[string][]string{
		"main":                          {"ghc -g3", "cabal build --ghc-options=-g3"},
		"vector-0.13.0.0":               {"  package vector\n    ghc-options: -g3", "    vector: -g3"},
		"unordered-containers-0.2.19.1": {"package unordered-containers\n"},
		"containers-0.6.4.1":            {"constraints: containers source", "extra-deps: [containers-0.6.4.1]"},
		"base":                          {"+debug_info"},
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
