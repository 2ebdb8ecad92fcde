package text

import (
	"bytes"
	"strings"
	"testing"

	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/ui/printer"
)

// A series says how often a program was stopped, and how often for longer than was allowed; the goal of a pause is no guarantee.
func TestStopsOverTheLimit(t *testing.T) {
	pr, err := profile.Load(bytes.NewReader(logtest.Growing().End()))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := (Info{Profile: pr}).Text(&b, printer.Options{}); err != nil {
		t.Fatal(err)
	}
	want := "2 of 7 stops lasted longer than the 5.00 ms of --max-pause"
	if text := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(text, "for 7.00 ms at the longest") || !strings.Contains(text, want) {
		t.Errorf("it says %q, want %q", text, want)
	}
	if all := seriesOf(pr); len(all) != 1 || all[0].Stops != 7 || all[0].Over != 2 {
		t.Errorf("JSON has %+v", all)
	}
}
