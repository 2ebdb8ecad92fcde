package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// Time off the CPU is attributed to the code that made the blocking call, safe or unsafe; a
// capability that idles while its threads sleep has none.
func TestOffCPU(t *testing.T) {
	for _, c := range []testprog.Options{
		{}, {Threaded: true}, {Release: "9.6.6", Threaded: true}, {Release: "9.10.3", Threaded: true},
	} {
		t.Run(fmt.Sprintf("GHC %s threaded %v", c.Release, c.Threaded), func(t *testing.T) {
			const ms = 100
			log, r := record(t, []string{"-e", "off-cpu"}, testprog.Build(t, "waits", c), strconv.Itoa(ms))
			m := regexp.MustCompile(`safe (\d+) unsafe (\d+) delay (\d+)`).FindStringSubmatch(r.stdout)
			if m == nil {
				t.Fatalf("the program says %q", r.stdout)
			}
			var h struct {
				Event, Unit string
				Total       float64
				Rows        []hotRow
			}
			view(t, &h, "hot", "--event", "off-cpu", log)
			if h.Unit != "ns" {
				t.Errorf("the unit is %q", h.Unit)
			}
			delay, err := strconv.ParseFloat(m[3], 64) // µs
			if err != nil {
				t.Fatal(err)
			}
			inclusive := map[string]float64{}
			for _, row := range h.Rows {
				inclusive[row.Element] = row.Inclusive * h.Total
				// An idle wait would have all of the delay; on a busy machine the event manager's
				// start may wait for some moments itself.
				if (strings.HasPrefix(row.Element, "GHC.Event.") || row.Element == "Main.delay") && inclusive[row.Element] > 0.5*delay*1e3 {
					t.Errorf("%s has %.0f ns, and only waits for others", row.Element, inclusive[row.Element])
				}
			}
			t.Logf("%s: %v of %.0f ns\n%s", m[0], inclusive, h.Total, r.stderr)
			for i, element := range []string{"Main.sleepSafely", "Main.sleepUnsafely"} {
				// It does next to nothing but sleep.
				took, err := strconv.ParseFloat(m[1+i], 64)
				if err != nil {
					t.Fatal(err)
				}
				if got := inclusive[element]; got < 0.5*took*1e3 || got > took*1e3 {
					t.Errorf("%s was off the CPU for %.0f ns, and took %.0f", element, got, took*1e3)
				}
			}
		})
	}
}
