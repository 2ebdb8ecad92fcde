package census

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"ccagent/agent/invoker"
	"ccagent/agent/process"
	"ccagent/agent/rtsites"
	"ccagent/agent/sink"
	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/internal/testprog"
)

// situation is a program, how it is built and run.
type situation struct {
	program string
	options testprog.Options
	args    []string
	rts     string
	// collections is how many the program is to have made before its census.
	collections uint32
}

func (s situation) String() string {
	name := s.program + " " + s.rts
	return strings.Join(strings.Fields(name+" "+s.options.Release+" "+strings.Join(s.options.Flags, " ")), "_")
}

// running is a process that writes the run-time system's own census of each major collection into
// its eventlog.
type running struct {
	cmd *exec.Cmd
	log string
	im  *process.Image
}

func start(t testing.TB, s situation) *running {
	t.Helper()
	testprog.NeedRoot(t)
	o := s.options
	if o.Release == "" {
		o.Flags = append([]string{"-eventlog"}, o.Flags...) // since 9.4 every program has it
	}
	exe := testprog.Build(t, s.program, o)
	log := filepath.Join(t.TempDir(), "own.eventlog")
	args := append(append(append([]string{}, s.args...), "+RTS"), strings.Fields(s.rts)...)
	if !strings.Contains(s.rts, "--nonmoving-gc") {
		args = append(args, "-hT", "-i0")
	}
	args = append(args, "-l-au", "-ol"+log, "-RTS")
	cmd := exec.Command(exe, args...)
	cmd.Dir = filepath.Dir(log)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // it ends where its input does
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	testprog.WaitExecuted(t.(*testing.T), cmd.Process.Pid)
	r := &running{cmd: cmd, log: log}
	r.inspect(t)
	return r
}

// end interrupts the program, which then writes the rest of its log.
func (r *running) end(t testing.TB) {
	t.Helper()
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = r.cmd.Wait()
}

func (r *running) inspect(t testing.TB) {
	t.Helper()
	who, err := invoker.Find("")
	if err != nil {
		t.Fatal(err)
	}
	log := sink.New(sink.Config{Who: who})
	t.Cleanup(func() { _ = log.Close() })
	if err := log.Create(filepath.Join(t.TempDir(), "census.eventlog"), r.cmd.Path, r.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	// A dynamically linked program maps its run-time system in its first moments.
	for r.im == nil {
		table := process.NewUnwalked(sink.NewSet(nil, log))
		im, err := table.Discover(log, uint32(r.cmd.Process.Pid), "", r.cmd.Path, false)
		if err != nil {
			t.Fatal(err)
		}
		if im.RTS == nil {
			_ = table.Close()
			continue
		}
		r.im = im
		t.Cleanup(func() { _ = table.Close() })
	}
}

func (r *running) reader(t testing.TB) (*Reader, Site, error) {
	t.Helper()
	symbols, err := r.im.RTS.RTSSymbols()
	if err != nil {
		t.Fatal(err)
	}
	at, err := rtsites.FindCensus(symbols)
	if err != nil {
		return nil, Site{}, err
	}
	site, ok := SiteOf(r.im.RTS, at)
	if !ok {
		t.Fatal("the run-time system's functions are in no file")
	}
	return NewReader(r.im, &at.Heap), site, nil
}

// ownCensuses reads the run-time system's own censuses.
func ownCensuses(t testing.TB, path string) (all []map[string]uint64) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := eventlog.NewReader(f); r.Next(); {
		switch e := r.Record().Event.(type) {
		case *eventlog.HeapSampleBegin:
			all = append(all, map[string]uint64{})
		case *eventlog.HeapSampleString:
			all[len(all)-1][e.Label] += e.Bytes
		}
	}
	return all
}

// compare returns how two censuses differ, by band.
func compare(ours, theirs map[string]uint64) (differ []string, bytes uint64) {
	names := map[string]bool{}
	for n := range ours {
		names[n] = true
	}
	for n := range theirs {
		names[n] = true
	}
	for n := range names {
		if a, b := ours[n], theirs[n]; a != b {
			differ = append(differ, fmt.Sprintf("%s %d (RTS: %d)", n, a, b))
			bytes += max(a, b) - min(a, b)
		}
	}
	sort.Strings(differ)
	return differ, bytes
}

func sum(m map[string]uint64) (n uint64) {
	for _, b := range m {
		n += b
	}
	return n
}

// bandsOf are the bytes of a census by band.
func bandsOf(r *Reader, c *Census) map[string]uint64 {
	bands := map[string]uint64{}
	for _, b := range c.Detailed(r.Profiled, r.Tables.Name) {
		bands[b.Name] = b.Bytes
	}
	return bands
}

// theirBands are the bands of a census as the run-time system would report them: since 9.2 it counts
// of the arrays in a pinned block the first alone, before that the whole block.
func theirBands(r *Reader, c *Census, release string) map[string]uint64 {
	bands := bandsOf(r, c)
	if v, err := ghc.ParseVersion(release); err == nil && !v.Before(ghc.Version{Major: 9, Minor: 2}) {
		t, header := c.Tally, uint64(0)
		if r.Profiled {
			header = ghc.ProfiledHeaderWords
		}
		bands["ARR_WORDS"] -= 8 * (t.PinnedWords - header*t.Pinned)
		bands["ARR_WORDS"] += 8 * (t.PinnedFirst - header*t.PinnedHeads)
	}
	if r.Profiled { // which does not count threads and stacks, without -xt before 9.4
		for _, band := range []string{"TSO", "STACK"} {
			delete(bands, band)
		}
	}
	return bands
}

// result is what a situation gave.
type result struct {
	situation
	bands, differ int
	bytes, error  uint64
	margin        uint64 // of all bands, of a census that has counted a part of the heap
	pause         time.Duration
	manner        Manner
	drawn         *Draw // nil if the whole heap was counted
	large, held   int   // bands of a hundredth of the heap and more, of one that was drawn; and those of them whose interval has the truth
	which         []string
}

// try takes a census of a program and compares it with the run-time system's own of the same
// collection.
func try(t *testing.T, s situation, o Options) result {
	t.Helper()
	res, err := tryCensus(t, s, o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// grow waits until the program has made some collections, and for a while at the most.
func (s situation) grow(r *Reader) {
	for until := time.Now().Add(growFor); s.collections > 0 && time.Now().Before(until); time.Sleep(time.Millisecond) {
		if d, err := r.Descriptors(); err == nil && d.Oldest().Collections >= s.collections { // it changes while it is read
			return
		}
	}
}

// growFor is for how long a program may grow before its census, in a measurement.
const growFor = 4 * time.Second

// tryCensus is try, and returns the error of a census that is refused.
func tryCensus(t *testing.T, s situation, o Options) (res result, err error) {
	t.Helper()
	r := start(t, s)
	reader, site, err := r.reader(t)
	if err != nil {
		return res, err
	}
	s.grow(reader)
	for tries := 0; ; tries++ {
		c, err := reader.AtCollection(t.Context(), site, o)
		if tries < 50 && (errors.Is(err, ErrCollected) || err == nil && c.Descriptors.Oldest().Collections < 4) {
			continue // it is only beginning
		}
		if err != nil {
			return res, err
		}
		ours := theirBands(reader, c, r.im.RTS.Binary.GHCVersion)
		r.end(t)
		all := ownCensuses(t, r.log)
		// The run-time system's first census is that of its first collection.
		n := int(c.Descriptors.Oldest().Collections)
		if n < 1 || n > len(all) {
			t.Fatalf("the log has %d censuses; ours is of collection %d", len(all), n)
		}
		theirs := all[n-1]
		if reader.Profiled {
			delete(theirs, "TSO")
			delete(theirs, "STACK")
		}
		res = result{situation: s, bands: len(theirs), bytes: sum(theirs), pause: c.Pause, manner: c.Manner}
		if d := c.Draw; d != nil {
			res.drawn, res.margin = d, sum(d.Margins)
			for band, bytes := range theirs {
				if bytes < res.bytes/100 {
					continue
				}
				res.large++
				if off := max(ours[band], bytes) - min(ours[band], bytes); off <= d.Margins[band] {
					res.held++
				}
			}
		}
		res.which, res.error = compare(ours, theirs)
		res.differ = len(res.which)
		return res, nil
	}
}

// A census has what the run-time system's own has, band by band, to the byte, if the program
// stands until it is copied; and almost that if it runs.
func TestSameAsTheRunTimeSystem(t *testing.T) {
	args := []string{"4000", "100000000"}
	for _, s := range []situation{
		{program: "retain", args: args},
		{program: "retain", args: args, options: testprog.Options{Threaded: true}, rts: "-N2"},
		{program: "retain", args: args, options: testprog.Options{Threaded: true, Release: "9.10.3"}, rts: "-N2"},
		{program: "retain", args: args, options: testprog.Options{Threaded: true, Release: "9.10.3", Flags: []string{"-pie", "-fPIC"}}},
	} {
		pauses := []time.Duration{0, time.Nanosecond}
		if s.options.Threaded {
			pauses = pauses[:1] // it collects again before its heap is copied
		}
		for _, pause := range pauses {
			if pause > 0 { // the heap is to be copied before the next major collection, on a busy machine too
				s.rts += " -A64m"
			}
			t.Run(fmt.Sprintf("%v_%v", s, pause), func(t *testing.T) {
				res := try(t, s, Options{Wait: time.Minute, MaxPause: pause})
				t.Logf("%d bands, %d bytes ±%d, stopped for %v", res.bands, res.bytes, res.margin, res.pause)
				switch exact := pause == 0; {
				case exact != (res.manner == Exact):
					t.Errorf("its manner is %d", res.manner)
				case exact && res.differ > 0, res.error > res.bytes/100+res.margin:
					t.Errorf("%d bands differ by %d bytes: %q", res.differ, res.error, res.which)
				}
			})
		}
	}
}
