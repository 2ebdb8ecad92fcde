package chart

import (
	"strings"
	"testing"

	"ccagent/internal/format"
	"ccagent/profile/timeline"
)

func draw(s *timeline.HeapSeries, height int, limit uint64) string {
	var b strings.Builder
	for _, row := range Bands(s, height, limit) {
		for _, c := range row {
			b.WriteString(Letter(c))
		}
		b.WriteString("|\n")
	}
	return b.String()
}

func TestBands(t *testing.T) {
	s := &timeline.HeapSeries{
		Rows: []timeline.HeapRow{
			{Bytes: []uint64{0, 40, 20, 1, 49}},
			{Bytes: []uint64{0, 10, 20, 0, 1}},
		},
		Other: []uint64{0, 10, 40, 0, 0},
		Total: []uint64{0, 60, 80, 1, 50},
	}
	got := draw(s, 4, 80)
	want := "" +
		"  .  |\n" +
		" B. A|\n" + // 40 to 60: half filled is filled, by what has most of it
		" AB A|\n" +
		" AAAA|\n" // what is not nothing shows
	if got != want {
		t.Errorf("drawn:\n%swant:\n%s", got, want)
	}
	if got := draw(s, 0, 80); got != "" {
		t.Errorf("no height: %q", got)
	}
}

func TestLimitAndAxis(t *testing.T) {
	for _, c := range []struct {
		v, limit uint64
		axis     string
	}{{0, 1, "1B"}, {1, 1, "1B"}, {700, 768, "768B"}, {1024, 1024, "1K"}, {1300, 1536, "1.5K"}, {3 << 20, 3 << 20, "3M"}, {200 << 20, 256 << 20, "256M"}, {1 << 62, 1 << 62, "4E"}} {
		if l := Limit(c.v); l != c.limit || format.ShortBytes(l) != c.axis {
			t.Errorf("of %d: %d %q, want %d %q", c.v, l, format.ShortBytes(l), c.limit, c.axis)
		}
	}
}
