package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ccagent/eventlog"
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

// Threads that wait all the time cost no more than is allowed: switches are looked at in windows. For how long each thread was off the CPU is known all the
// same, as the kernel counts its CPU time, and what was not looked at is given to no call.
func TestOffCPUIsBounded(t *testing.T) {
	threads := regexp.MustCompile(`(?m)^(ping|pong|rest) (\d+) wall (\d+) cpu (\d+) delay (\d+)$`)
	for _, c := range []struct {
		flags   []string
		bounded bool
	}{{nil, true}, {[]string{"--max-overhead", "0"}, false}} {
		t.Run(fmt.Sprintf("bounded %v", c.bounded), func(t *testing.T) {
			log, r := record(t, append([]string{"-e", "off-cpu"}, c.flags...), testprog.Build(t, "pipes", testprog.Options{Threaded: true}), "6000")
			found := threads.FindAllStringSubmatch(r.stdout, -1)
			if len(found) != 3 {
				t.Fatalf("the program says %q", r.stdout)
			}
			off, unwatched := waitsOf(t, log)
			for _, m := range found {
				var n [4]float64 // thread id, and seconds of wall, CPU and delay
				for i := range n {
					n[i], _ = strconv.ParseFloat(m[2+i], 64)
				}
				// The kernel counts CPU time up to the last tick of a thread that runs. A thread that waits for its capability, when a call has returned, is
				// idle, and what is known of that is not counted.
				const unsure, idle = 100e6, 0.1
				got, most := off[uint32(n[0])], n[1]-n[2]
				least := most - n[3]
				t.Logf("%s: %.3f s, of them %.3f not watched; %.3f to %.3f", m[1], got/1e9, unwatched[uint32(n[0])]/1e9, least/1e9, most/1e9)
				if got > most*1.02+unsure || got < least*(1-idle)-unsure {
					t.Errorf("%s was off the CPU for %.3f s, want %.3f to %.3f", m[1], got/1e9, least/1e9, most/1e9)
				}
				// Others take all stacks that a CPU may; this thread has those of its first wait in 8 ms besides. (The wait for its capability may be that.)
				if !c.bounded && m[1] == "rest" && unwatched[uint32(n[0])] > 0.5*got {
					t.Errorf("of %s %.3f s were not watched without a bound", m[1], unwatched[uint32(n[0])]/1e9)
				}
			}
			if !c.bounded {
				return
			}
			if cost, allowed := paid(t, log); cost > allowed {
				t.Errorf("looking at waits took %.1f ms, and may take %.1f", cost/1e6, allowed/1e6)
			}
			var h struct{ Rows []hotRow }
			view(t, &h, "hot", "--event", "off-cpu", log)
			if !slices.ContainsFunc(h.Rows, func(r hotRow) bool { return r.Element == "(not watched)" && r.Inclusive > 0 }) || !strings.Contains(r.stderr, "not watched") {
				t.Errorf("nothing says that waits were not watched:\n%s\n%v", r.stderr, h.Rows)
			}
		})
	}
}

// paid is what measuring has cost a program, and what it may have, ns.
func paid(t *testing.T, log string) (cost, allowed float64) {
	eachRecord(t, log, func(r *eventlog.Record) {
		if o, ok := r.Event.(*eventlog.Overhead); ok {
			cost += float64(o.EventNs + o.AllocNs + o.InterruptNs)
			allowed += float64(o.TargetNs) * float64(o.Asked) / 1e6
		}
	})
	return cost, allowed + 25e6 // beforehand (docs/limits.md)
}

// waitsOf adds up the samples of waits by thread, and those of what was not watched.
func waitsOf(t *testing.T, log string) (off, unwatched map[uint32]float64) {
	t.Helper()
	off, unwatched = map[uint32]float64{}, map[uint32]float64{}
	leaves := map[uint32]bool{} // nodes of what was not watched
	eachRecord(t, log, func(r *eventlog.Record) {
		switch e := r.Event.(type) {
		case *eventlog.Nodes:
			for i, n := range e.Nodes {
				leaves[e.First+uint32(i)] = n.Kind == eventlog.FrameWait && n.Addr == uint64(eventlog.StateUnwatched)
			}
		case *eventlog.Sample:
			off[e.TID] += float64(e.Weight)
			if leaves[e.Node] {
				unwatched[e.TID] += float64(e.Weight)
			}
		}
	})
	return off, unwatched
}
