//go:build unix

package ui

import (
	"io"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/profile"
	"ccagent/profile/logtest"
)

// large is a generated profile: a million samples, or CCVIEW_BENCH_SAMPLES, on
// 100 000 stacks around 30 deep. It is made once.
func large(b *testing.B) *profile.Profile {
	b.Helper()
	n := 1_000_000
	if s := os.Getenv("CCVIEW_BENCH_SAMPLES"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			b.Fatal(err)
		}
	}
	if largeProfile == nil {
		r, w := io.Pipe()
		go func() { w.CloseWithError(logtest.Generate(w, n, 100_000, 1)) }()
		p, err := profile.Load(r)
		if err != nil {
			b.Fatal(err)
		}
		largeProfile = p
	}
	return largeProfile
}

var largeProfile *profile.Profile

// cpuTime is what the process has used so far, on all processors: unlike the
// clock, it does not count what others use.
func cpuTime(b *testing.B) time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// From a keypress to the frame that shows all of its answer: drawing, what is
// computed beside the event loop, and drawing that. Reported are the mean, the
// slowest, and the mean to the first frame, which shows what needs no computing.
func BenchmarkKeypress(b *testing.B) {
	for _, c := range []struct {
		name string
		open []string // pressed before, not timed
		keys []string // pressed in turn
	}{
		{"select", nil, []string{"j", "j", "j", "k", "k", "j", "j", "k", "k", "k"}},
		{"range", []string{"tab", "tab", "home", "l", "l", "l"}, []string{"[", "l", "[", "l", "l", "]"}},
		{"focus", nil, []string{"f", "j", "f", "j", "j", "f"}},
		{"drop", nil, []string{"d", "j", "d"}},
		{"zoom", []string{"tab", "tab"}, []string{"+", "+", "-", ">", "0"}},
		{"source", []string{"2"}, []string{"j", "j", "n", "n", "N", "k"}},
		{"tree", []string{"3"}, []string{"j", "l", "j", "i", "j", "i"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := large(b)
			s := start(b, p, 120, 40, Options{Theme: "dark"})
			s.keys(c.open...)
			var first, whole []time.Duration
			var cpu time.Duration
			for b.Loop() {
				for _, k := range c.keys {
					begin, used := time.Now(), cpuTime(b)
					_, cmd := s.app.Update(press(k))
					first = append(first, time.Since(begin))
					s.run(cmd)
					whole = append(whole, time.Since(begin))
					cpu += cpuTime(b) - used
				}
				b.StopTimer()
				for s.app.c.Applied.Undo() {
				}
				s.keys("esc")
				b.StartTimer()
			}
			report := func(name string, ds []time.Duration) {
				slices.Sort(ds)
				b.ReportMetric(float64(ds[len(ds)/2].Microseconds())/1000, "ms-"+name+"-median")
				b.ReportMetric(float64(ds[len(ds)*95/100].Microseconds())/1000, "ms-"+name+"-95%")
			}
			report("first", first)
			report("whole", whole)
			b.ReportMetric(float64(cpu.Microseconds())/1000/float64(len(whole)), "cpu-ms-whole-mean")
			b.ReportMetric(0, "ns/op")
		})
	}
}
