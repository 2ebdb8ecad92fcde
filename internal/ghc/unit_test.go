package ghc

import "testing"

func TestPackageOf(t *testing.T) {
	for unit, want := range map[string]string{
		"base": "base", "main": "main", "containers-0.6.4.1": "containers-0.6.4.1",
		"hledger-lib-1.25-Be1nVu5khAb4Vxy8j8lmog": "hledger-lib-1.25", "ghc-internal": "ghc-internal",
		"prog-0-inplace-tool": "prog-0", "tool-3fGJ9kQzX1YbC7pLmN5rT2": "tool",
	} {
		if got := PackageOf(unit); got != want {
			t.Errorf("%s is of %q, want %q", unit, got, want)
		}
	}
}
