package stacks_test

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"testing"

	"ccagent/profile"
	"ccagent/profile/logtest"
)

func load(t testing.TB, log []byte) *profile.Profile {
	t.Helper()
	p, err := profile.Load(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func nbody(t testing.TB) *profile.Profile { return load(t, logtest.NBody().End()) }

func expr(s string) []*regexp.Regexp { return []*regexp.Regexp{regexp.MustCompile(s)} }

// table gives rows as "element share only inclusive samples", the figures in
// per cent of the total.
func table(h *profile.Hot) []string {
	var out []string
	pc := func(f float64) float64 { return math.Round(f*1000) / 10 }
	for _, r := range h.Rows {
		out = append(out, fmt.Sprintf("%s %v %v %v %d", r.Element.Name, pc(r.Share), pc(r.Only), pc(r.Inclusive), r.Samples))
	}
	return out
}
