package e2e

import (
	"bufio"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ccagent/agent/rtsites"
	"ccagent/eventlog"
	"ccagent/internal/elftest"
	"ccagent/internal/testprog"
)

// story is the GCs and threads of a log, read by this project's reader.
type story struct {
	collections []eventlog.GCStats
	live        []uint64
	allocated   []eventlog.HeapAllocated
	gcStarts    map[int]int // by capability
	runs        int
	stops       map[eventlog.StopStatus]int
	labels      map[string]bool
	caps        map[uint16]bool
	probes      map[string]eventlog.RTSProbes
}

func readStory(t *testing.T, path string) *story {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := &story{gcStarts: map[int]int{}, stops: map[eventlog.StopStatus]int{}, labels: map[string]bool{}, caps: map[uint16]bool{},
		probes: map[string]eventlog.RTSProbes{}}
	r := eventlog.NewReader(bufio.NewReader(f))
	for r.Next() {
		switch e := r.Record().Event.(type) {
		case *eventlog.GCStats:
			s.collections = append(s.collections, *e)
		case *eventlog.HeapLive:
			s.live = append(s.live, e.Bytes)
		case *eventlog.HeapAllocated:
			s.allocated = append(s.allocated, *e)
		case *eventlog.GCStart:
			s.gcStarts[r.Record().Cap]++
		case *eventlog.RunThread:
			s.runs++
		case *eventlog.StopThread:
			s.stops[e.Status]++
		case *eventlog.ThreadLabel:
			s.labels[e.Label] = true
		case *eventlog.CapCreate:
			s.caps[e.Cap] = true
		case *eventlog.RTSProbes:
			s.probes[e.Group] = *e
		}
	}
	if err := r.Err(); err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	return s
}

// The timeline of an unmodified program equals that of its own run-time system: every GC
// with its figures, every run and stop of a thread.
func TestTimeline(t *testing.T) {
	for _, release := range testprog.Releases {
		for _, threaded := range []bool{false, true} {
			t.Run(fmt.Sprintf("GHC %s threaded %v", release, threaded), func(t *testing.T) {
				// This RTS can write the reference. It has no other difference, and is the
				// only RTS from 9.4 on.
				exe := testprog.Build(t, "waits", testprog.Options{Release: release, Threaded: threaded, Flags: []string{"-eventlog"}})
				reference := filepath.Join(t.TempDir(), "rts.eventlog")
				log, r := record(t, []string{"--max-overhead", "0"}, exe, "2", "+RTS", "-s", "-l", "-ol"+reference)
				ours, theirs := readStory(t, log), readStory(t, reference)
				for group, p := range ours.probes {
					t.Logf("%s: %+v", group, p)
					if p.Problem != "" || p.Hits == 0 || p.OutNs > 0 {
						t.Errorf("%s: %+v", group, p)
					}
				}
				if len(ours.collections) != len(theirs.collections) {
					t.Fatalf("%d collections, the RTS wrote %d", len(ours.collections), len(theirs.collections))
				}
				for i, c := range ours.collections {
					if c != theirs.collections[i] {
						t.Errorf("collection %d: %+v, the RTS wrote %+v", i, c, theirs.collections[i])
					}
				}
				if fmt.Sprint(ours.live) != fmt.Sprint(theirs.live) || len(ours.live) == 0 {
					t.Errorf("live data %v, the RTS wrote %v", ours.live, theirs.live)
				}
				// The RTS logs it once more at its end.
				if n := len(ours.allocated); n == 0 || n > len(theirs.allocated) || !slices.Equal(ours.allocated, theirs.allocated[:n]) {
					t.Errorf("allocated by each collection %v, the RTS wrote %v", ours.allocated, theirs.allocated)
				}
				comparePauses(t, log, reference)
				if !maps.Equal(ours.gcStarts, theirs.gcStarts) {
					t.Errorf("starts of collections by capability: %v, the RTS wrote %v", ours.gcStarts, theirs.gcStarts)
				}
				// A run at the process's end may be missing, with its stop.
				apart := map[eventlog.StopStatus]int{}
				for why, n := range theirs.stops {
					apart[why] = max(n-ours.stops[why], ours.stops[why]-n)
				}
				for why, n := range ours.stops {
					apart[why] = max(n-theirs.stops[why], theirs.stops[why]-n)
				}
				missing, same := 0, true
				for why, n := range apart {
					missing += n
					same = same && (ours.stops[why] > 0 || theirs.stops[why] < 2)
				}
				t.Logf("%d runs and %v; the RTS wrote %d, %v", ours.runs, ours.stops, theirs.runs, theirs.stops)
				same = same && missing <= 2 && max(ours.runs-theirs.runs, theirs.runs-ours.runs) <= 2
				if !same {
					t.Errorf("%d runs, stopped by reason %v; the RTS wrote %d, %v", ours.runs, ours.stops, theirs.runs, theirs.stops)
				}
				if !ours.labels["worker λ"] || !maps.Equal(ours.caps, theirs.caps) {
					t.Errorf("labels %v, capabilities %v; the RTS wrote %v, %v", ours.labels, ours.caps, theirs.labels, theirs.caps)
				}

				total := 0
				for _, m := range regexp.MustCompile(`Gen +\d+ +(\d+) colls`).FindAllStringSubmatch(r.stderr, -1) {
					n, err := strconv.Atoi(m[1])
					if err != nil {
						t.Fatal(err)
					}
					total += n
				}
				var info struct {
					RTS struct{ Collections int }
				}
				view(t, &info, "info", log)
				if total == 0 || info.RTS.Collections != total {
					t.Errorf("ccview info says %d collections, +RTS -s %d", info.RTS.Collections, total)
				}
				validate(t, log)
			})
		}
	}
}

// comparePauses holds pauses against those of the RTS's own log: their number, and their parts, which
// both read from the same clock within a few instructions of each other. What an OS thread is kept
// from the CPU between the two adds to one of them only, so all sums may differ by that, but the
// middle one of the differences is that of two readings.
func comparePauses(t *testing.T, log, reference string) {
	t.Helper()
	type pause struct {
		Seconds float64
		Sync    float64 `json:"sync_seconds"`
		Work    float64 `json:"work_seconds"`
	}
	var ours, theirs struct{ Pauses []pause }
	view(t, &ours, "gc", log)
	view(t, &theirs, "gc", reference)
	if len(ours.Pauses) != len(theirs.Pauses) {
		t.Fatalf("%d pauses, the RTS wrote %d", len(ours.Pauses), len(theirs.Pauses))
	}
	for what, of := range map[string]func(pause) float64{
		"pause": func(p pause) float64 { return p.Seconds },
		"sync":  func(p pause) float64 { return p.Sync },
		"work":  func(p pause) float64 { return p.Work },
	} {
		var apart, all []float64
		for i, p := range ours.Pauses {
			apart = append(apart, math.Abs(of(p)-of(theirs.Pauses[i])))
			all = append(all, of(theirs.Pauses[i]))
		}
		slices.Sort(apart)
		slices.Sort(all)
		if median, usual := apart[len(apart)/2], all[len(all)/2]; median > 1e-3+usual/5 {
			t.Errorf("%s: half of %d differ by %.6f s and more, of %.6f s", what, len(apart), median, usual)
		}
	}
}

// validate checks the threads' events with ghc-events, if that is installed.
func validate(t *testing.T, log string) {
	t.Helper()
	tool, err := exec.LookPath("ghc-events")
	if err != nil {
		t.Log("unsupported: no ghc-events to validate with")
		return
	}
	r := run(t, command(t, tool, "validate", "threads", log))
	if r.status != 0 || !strings.HasPrefix(r.stdout, "Valid event log") {
		t.Errorf("ghc-events validate threads: status %d\n%.1000s\n%.1000s", r.status, r.stdout, r.stderr)
	}
}

// A stripped program has no place for probes: that is reported for each event, and the other
// events are recorded. If no event is left, it is an error.
func TestTimelineNeedsSymbols(t *testing.T) {
	strip := testprog.NeedTool(t, "strip", "binutils")
	stripped := filepath.Join(t.TempDir(), "waits")
	if out, err := exec.Command(strip, "-o", stripped, testprog.Build(t, "waits", testprog.Options{})).CombinedOutput(); err != nil {
		t.Fatalf("strip: %v\n%s", err, out)
	}
	log, r := record(t, nil, stripped, "2")
	wantLine(t, r.stderr, "gc", "not available", "symbol", "unstripped")
	wantLine(t, r.stderr, "threads", "not available", "symbol", "unstripped")
	if s := readStory(t, log); s.probes["gc"].Problem == "" || s.probes["threads"].Problem == "" {
		t.Errorf("the log says nothing of it: %+v", s.probes)
	}
	if l := readLog(t, log); len(l.samples) == 0 {
		t.Error("no other event was sampled")
	}
	alone := run(t, command(t, ccagent, "record", "-e", "gc,threads", "-o", log, "--", stripped))
	if alone.status != 125 || !strings.Contains(alone.stderr, "not available") {
		t.Errorf("gc,threads alone: status %d\n%s", alone.status, alone.stderr)
	}
}

// When the agent is killed its probes are removed: the program's code is as before.
func TestKilledAgentLeavesNoProbe(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "spin31", testprog.Options{})
	f := elftest.Open(t, exe)
	symbols, err := rtsites.ReadSymbols(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	sites, err := rtsites.Find(symbols)
	if err != nil {
		t.Fatal(err)
	}
	target := command(t, exe, endless)
	begin(t, target)
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", target.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	const breakpoint = 0xcc
	probed := func() (n int) {
		for _, s := range append(sites.GC.Sites, sites.Threads.Sites...) {
			var b [1]byte
			// The program is linked to a fixed address.
			if _, err := memory.ReadAt(b[:], int64(s.Addr)); err != nil {
				t.Fatal(err)
			}
			if b[0] == breakpoint {
				n++
			}
		}
		return n
	}
	if n := probed(); n != 0 {
		t.Fatalf("%d probes before the capture", n)
	}
	agent := command(t, ccagent, "attach", "-o", filepath.Join(t.TempDir(), "killed.eventlog"), pidOf(target))
	wait := background(t, agent)
	eventually(t, "all probes are in", func() bool { return probed() == len(sites.GC.Sites)+len(sites.Threads.Sites) })
	if err := agent.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wait()
	eventually(t, "all probes are out", func() bool { return probed() == 0 })
	if err := target.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the program is gone: %v", err)
	}
}
