package series

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ccagent/agent/source"
	"ccagent/agent/sourcetest"
	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/internal/testprog"
	"ccagent/perf"
)

func TestMain(m *testing.M) { sourcetest.Main(m) }

func TestPeriod(t *testing.T) {
	for text, period := range map[string]time.Duration{"heap": defaultPeriod, "heap=250ms": 250 * time.Millisecond, "heap=2m": 2 * time.Minute} {
		if e, known, err := grant(text, perf.Rate{}); err != nil || !known || e.Detail != period {
			t.Errorf("%s: %v, %v, %v", text, e, known, err)
		}
	}
	for _, text := range []string{"heap=", "heap=0", "heap=0s", "heap=-1s", "heap=abc", "heap=1", "heap=1s=2s"} {
		if _, known, err := grant(text, perf.Rate{}); err == nil || !known || !strings.Contains(err.Error(), "heap=1s") {
			t.Errorf("%s: %v, %v", text, known, err)
		}
	}
	if _, known, err := grant("heaps", perf.Rate{}); err != nil || known {
		t.Errorf("another event: %v, %v", known, err)
	}
	if _, err := source.Parse([]source.Kind{Kind()}, []string{"heap", "heap=1s"}, perf.Rate{}); err == nil {
		t.Error("it is asked for twice")
	}
}

// one is a census in the log.
type one struct {
	how    eventlog.HeapCensus
	bytes  map[string]uint64
	counts map[string]uint64
	kinds  map[string]uint64 // bytes by info table, summed by band
	thunks int               // info tables of thunks
}

func censusesOf(t *testing.T, r *sourcetest.Rig) (all []one) {
	t.Helper()
	band := 0
	var how *eventlog.HeapCensus
	kinds, thunks := map[string]uint64{}, 0
	closures := map[uint32]eventlog.Closure{}
	r.Each(t, func(e eventlog.Event) {
		switch e := e.(type) {
		case *eventlog.Closure:
			closures[e.ID] = *e
		case *eventlog.HeapKinds:
			if e.Rest > 0 {
				t.Errorf("%d closures are of no info table", e.Rest)
			}
			if e.Pinned > 0 {
				kinds[ghc.ArrWords.String()] += e.PinnedBytes
			}
			for _, k := range e.Kinds {
				c, ok := closures[k.Closure]
				if !ok || c.Module == 0 || k.Count == 0 {
					t.Errorf("%d closures of %+v, which was defined before: %v", k.Count, c, ok)
				}
				kind := ghc.ClosureType(c.Type)
				if kind.In(ghc.Thunk, ghc.Thunk02) {
					thunks++
				}
				name := kind.String()
				if kind.In(ghc.Constr, ghc.ConstrNoCAF) {
					name = c.Name
				}
				kinds[name] += k.Bytes
			}
		case *eventlog.HeapCensus:
			copied := *e
			copied.Counts = append([]uint64(nil), e.Counts...)
			how = &copied
		case *eventlog.HeapSampleBegin:
			if how == nil {
				t.Fatal("a census does not say how it was taken")
			}
			all = append(all, one{*how, map[string]uint64{}, map[string]uint64{}, kinds, thunks})
			how, band, kinds, thunks = nil, 0, map[string]uint64{}, 0
		case *eventlog.HeapSampleString:
			c := &all[len(all)-1]
			c.bytes[e.Label] += e.Bytes
			c.counts[e.Label] += c.how.Counts[band]
			band++
		}
	})
	return all
}

// theirs are the run-time system's own censuses, from its first collection on.
func theirs(t *testing.T, path string) (all []map[string]uint64) {
	t.Helper()
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for r := eventlog.NewReader(bytes.NewReader(log)); r.Next(); {
		switch e := r.Record().Event.(type) {
		case *eventlog.HeapSampleBegin:
			all = append(all, map[string]uint64{})
		case *eventlog.HeapSampleString:
			all[len(all)-1][e.Label] += e.Bytes
		}
	}
	return all
}

// The censuses of a series are the run-time system's own of the same collections, to the byte, and a band
// that leaks grows by what arithmetic says: each entry is a node of six words and a value of three.
func TestSeries(t *testing.T) {
	testprog.NeedRoot(t)
	own := []string{"-eventlog"} // since 9.4 every program has it
	for _, o := range []testprog.Options{
		{Flags: own}, {Threaded: true, Flags: own}, {Prof: true, Flags: own},
		{Threaded: true, Release: "9.6.6"}, {Threaded: true, Release: "9.10.3"}, {Prof: true, Release: "9.6.6"}, {Prof: true, Release: "9.10.3"},
	} {
		t.Run(fmt.Sprintf("%s,threaded=%v,prof=%v", cmp.Or(o.Release, "own"), o.Threaded, o.Prof), func(t *testing.T) { testSeries(t, o) })
	}
}

func testSeries(t *testing.T, o testprog.Options) {
	const step, wanted = 500, 4
	exe := testprog.Build(t, "grow", o)
	own := filepath.Join(t.TempDir(), "own.eventlog")
	r := sourcetest.Open(t, Kind(), perf.Rate{}, "heap=1ms")
	im := r.Run(t, exe, fmt.Sprint(step), "1000000", "2000", "+RTS", "-hT", "-i0", "-l-au", "-ol"+own, "-RTS")
	s := r.Source.(*series)
	if err := s.Unavailable(); err != nil || s.image == nil {
		t.Fatalf("%v; %q", err, r.Warned)
	}
	sourcetest.Until(t, "there are censuses", func() bool {
		if err := s.Throttle(source.Use{Time: perf.Monotonic()}); err != nil {
			t.Fatal(err)
		}
		return s.image.account.Taken >= wanted
	})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(perf.Monotonic()); err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(int(im.PID))
	if err != nil {
		t.Fatal(err)
	}
	all := censusesOf(t, r)
	a := s.accounts[len(s.accounts)-1]
	if a.Taken != uint64(len(all)) || a.Majors < a.Taken || a.Collections < a.Majors || a.StoodNs < a.LongestNs || a.LongestNs == 0 {
		t.Errorf("%d censuses, and the account is %+v", len(all), a)
	}
	if a.Stops < a.Taken || a.Over > a.Stops || a.Over > 0 != (a.LongestNs > a.MaxPauseNs && a.MaxPauseNs > 0) {
		t.Errorf("what lasted longer than is allowed is wrong: %+v", a)
	}
	if err := process.Signal(os.Interrupt); err != nil { // it writes the rest of its log
		t.Fatal(err)
	}
	sourcetest.Until(t, "the program has ended", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", im.PID))
		return err != nil || bytes.Contains(stat, []byte(") Z "))
	})
	of := theirs(t, own)
	for i, c := range all {
		if c.how.Beside {
			t.Errorf("census %d was copied beside the program", i)
		}
		if !maps.Equal(c.kinds, c.bytes) || c.thunks == 0 {
			t.Errorf("census %d: by info table bands have %v, with %d kinds of thunks; without %v", i, c.kinds, c.thunks, c.bytes)
		}
		theirs := of[c.how.Collection-1]
		bands := map[string]bool{}
		for band := range theirs {
			bands[band] = true
		}
		for band := range c.bytes {
			bands[band] = true
		}
		var node, session string
		for band := range bands {
			ours, theirs := c.bytes[band], theirs[band]
			switch {
			case o.Prof && (band == "TSO" || band == "STACK"): // it counts none
			case o.Release != "" && band == "ARR_WORDS": // of each pinned block it counts the first array alone
				if ours < theirs || ours-theirs > c.how.Pinned {
					t.Errorf("census %d: byte arrays have %d bytes, %d of these pinned, and %d by the run-time system", i, ours, c.how.Pinned, theirs)
				}
			case ours != theirs:
				t.Errorf("census %d: %s has %d bytes, and %d by the run-time system", i, band, ours, theirs)
			}
			if strings.HasSuffix(band, ":Data.Map.Internal.Bin") {
				node = band
			} else if strings.HasSuffix(band, ":Main.Session") {
				session = band
			}
		}
		if n := c.counts[session]; n == 0 || c.bytes[session] != 24*n || c.bytes[node] != 48*c.counts[node] {
			t.Errorf("census %d: %d values in %d bytes, %d nodes in %d", i, n, c.bytes[session], c.counts[node], c.bytes[node])
		}
		if i > 0 && c.counts[session] <= all[i-1].counts[session] {
			t.Errorf("census %d has %d values, the one before %d", i, c.counts[session], all[i-1].counts[session])
		}
	}
}

// A program whose collector moves nothing is counted where it stands: what its map has is whole, and grows.
func TestSeriesNonmoving(t *testing.T) {
	testprog.NeedRoot(t)
	for _, release := range []string{"", "9.6.6", "9.10.3"} {
		t.Run(cmp.Or(release, "own"), func(t *testing.T) {
			const wanted = 3
			exe := testprog.Build(t, "grow", testprog.Options{Threaded: true, Release: release})
			r := sourcetest.Open(t, Kind(), perf.Rate{}, "heap=1ms")
			r.Run(t, exe, "500", "1000000", "2000", "+RTS", "--nonmoving-gc")
			s := r.Source.(*series)
			sourcetest.Until(t, "there are censuses", func() bool {
				if err := s.Throttle(source.Use{Time: perf.Monotonic()}); err != nil {
					t.Fatal(err)
				}
				return s.image.account.Taken >= wanted
			})
			if err := s.Finish(perf.Monotonic()); err != nil {
				t.Fatal(err)
			}
			all := censusesOf(t, r)
			var was uint64
			for i, c := range all {
				n := c.counts["main:Main.Session"]
				if n < was || c.bytes["main:Main.Session"] != 24*n || !maps.Equal(c.kinds, c.bytes) {
					t.Errorf("census %d: %d values in %d bytes, and %d before; by info table %v", i, n, c.bytes["main:Main.Session"], was, c.kinds)
				}
				was = n
			}
			if last := all[len(all)-1]; was == 0 || !last.how.AtRest || last.how.PauseNs == 0 || s.accounts[0].Problem != "" || s.accounts[0].StoodNs == 0 {
				t.Errorf("%d values; %+v, %+v", was, last.how, s.accounts[0])
			}
		})
	}
}
