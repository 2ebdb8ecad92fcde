package heap

import (
	"bytes"
	"strings"
	"testing"

	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/ui/printer"
)

// The differences of all bands are the difference of the two heaps, and no band differs between a log and itself.
func TestBandChanges(t *testing.T) {
	load := func(log []byte) *profile.Profile {
		p, err := profile.Load(bytes.NewReader(log))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	r := BandChanges{A: load(logtest.Growing().End()), B: load(logtest.Divided().End())}
	a, b, why := r.sides()
	if why != "" {
		t.Fatal(why)
	}
	sum := int64(0)
	for _, c := range r.of(a, b) {
		sum += c.bytes()
	}
	if want := int64(b.Censuses[largest(b)].Total) - int64(a.Censuses[largest(a)].Total); sum != want || want == 0 {
		t.Errorf("bands differ by %d, the heaps by %d", sum, want)
	}
	var out strings.Builder
	if err := (BandChanges{A: r.B, B: r.B}).Text(&out, printer.Options{}); err != nil || !strings.Contains(out.String(), "No band differs.") {
		t.Errorf("%v: %s", err, out.String())
	}
}
