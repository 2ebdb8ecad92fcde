package ghc

import (
	"regexp"
	"sync"
)

var (
	unitVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(.+?-[0-9]+(?:\.[0-9]+)*)(?:-.*)?$`) })
	unitHash    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(.+)-[0-9A-Za-z]{16,64}$`) })
)

// PackageOf drops the build's hash from a unit id: "containers-0.6.5.1-1Xb…"
// is "containers-0.6.5.1". Version numbers stay where GHC gives them.
func PackageOf(unit string) string {
	if m := unitVersion().FindStringSubmatch(unit); m != nil {
		return m[1]
	}
	if m := unitHash().FindStringSubmatch(unit); m != nil {
		return m[1]
	}
	return unit
}
