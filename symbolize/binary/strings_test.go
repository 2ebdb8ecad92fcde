package binary

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ccagent/internal/ghc"
)

// The searches find what the expressions find, in text made of the pieces that matter.
func TestStringsAreWhatTheExpressionsFind(t *testing.T) {
	pieces := []string{"\x00", "\x00", ".", "1", "8", "9", "0", "10", "9.0.2", "\x009.6.6\x00", "\x0010.1.5\x00", "rts_", "\x00rts_", "thr", "_", "v", "p", "\x00rts_thr_debug\x00", "x"}
	r := rand.New(rand.NewPCG(1, 2))
	versions, ways := 0, 0
	for range 20000 {
		var b strings.Builder
		for range 1 + r.IntN(40) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		text := []byte(b.String())
		limit := 1 + r.IntN(4)
		var want [][2]int
		for _, m := range ghc.VersionString.FindAllSubmatchIndex(text, limit) {
			want = append(want, [2]int{m[2], m[3]})
		}
		if got := findVersions(text, limit); !slices.Equal(got, want) {
			t.Fatalf("%q has versions at %v; the expression says %v", text, got, want)
		}
		way := ""
		if m := ghc.WayString.FindSubmatch(text); m != nil {
			way = string(m[1])
		}
		if got := findWay(text); got != way {
			t.Fatalf("%q has way %q; the expression says %q", text, got, way)
		}
		versions += len(want)
		ways += len(way)
	}
	if versions == 0 || ways == 0 {
		t.Fatalf("no case had a version, or none a way")
	}
}
