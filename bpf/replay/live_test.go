//go:build linux && cgo && amd64

package replay

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ccagent/bpf/replay/oracle"
	"ccagent/bpf/replay/trace"
	"ccagent/internal/testprog"
)

// Limits: instructions executed from each situation on, and frames compared after each.
const (
	maxSteps    = 400
	maxCompared = 500_000
)

var oracleWays = []testprog.Options{
	{}, {O0: true}, {Threaded: true}, {Prof: true}, {O0: true, Threaded: true, Prof: true}, {NoDebug: true, Flags: []string{"-split-sections"}}, {Dynamic: true, Flags: []string{"-fPIC", "-pie"}},
}

// A walk of the live process gives the oracle's result in every situation, and after each of
// the instructions that follow it.
func TestAgainstOracle(t *testing.T) {
	for _, o := range oracleWays {
		t.Run(wayName(o), func(t *testing.T) { stepThroughWay(t, o) })
	}
}

// The same holds for every release of GHC in every way. This takes minutes; it prints the
// rows of a table.
func TestOracleMatrix(t *testing.T) {
	if os.Getenv("CCAGENT_MATRIX") == "" {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "minutes", Hint: "scripts/bench oracle"})
	}
	testprog.Each(t, func(t *testing.T, release string) {
		for _, o := range oracleWays {
			o.Release = release
			t.Run(wayName(o), func(t *testing.T) {
				s := stepThroughWay(t, o)
				_, version := testprog.GHC(t, "")
				if release != "" {
					version = release
				}
				fmt.Printf("| %s | %s | %d | %d | %d | %d | %d | %d |\n", version, wayName(o),
					s.situations, s.walked, s.frames, s.better, s.undecided, s.unknown)
			})
		}
	})
}

func stepThroughWay(t *testing.T, o testprog.Options) stepped {
	exe := testprog.Build(t, "situations", o)
	b := Build{GHC: o.Release, Threaded: o.Threaded, Profiled: o.Prof}
	if b.GHC == "" {
		_, b.GHC = testprog.GHC(t, o.GHC)
	}
	return stepThroughAll(t, exe, b)
}

// stepped are the counts of a comparison.
type stepped struct {
	situations, walked, frames int
	better                     int // the walker was right and the oracle wrong, as the thread's return showed
	undecided                  int // they differ, and the thread did not return within the limit of steps
	unknown                    int // the oracle failed
}

// The same holds for newer releases of GHC, in two ways.
func TestAgainstOracleNewer(t *testing.T) {
	for _, release := range []string{"9.6.6", "9.10.3"} {
		for _, o := range []testprog.Options{{}, {O0: true, Threaded: true, Prof: true}} {
			o.Release = release
			t.Run(release+"/"+wayName(o), func(t *testing.T) { stepThroughWay(t, o) })
		}
	}
}

func stepThroughAll(t *testing.T, exe string, b Build) (all stepped) {
	// Start-up is the libraries' own code, which decodes the arguments.
	startUp := Situation{Name: "start-up", Mode: "recursion", At: "stg_gc_noregs"}
	for _, s := range append(slices.Clone(Situations), startUp) {
		t.Run(s.Name, func(t *testing.T) {
			one := stepThrough(t, &s, exe, b)
			all.situations += one.situations
			all.walked += one.walked
			all.frames += one.frames
			all.better += one.better
			all.undecided += one.undecided
			all.unknown += one.unknown
		})
	}
	return all
}

func wayName(o testprog.Options) string {
	name := "O2"
	if o.O0 {
		name = "O0"
	}
	for suffix, on := range map[string]bool{"-debug": !o.NoDebug} {
		if !on {
			name += "-no" + suffix
		}
	}
	if o.Threaded {
		name += "-threaded"
	}
	if o.Prof {
		name += "-prof"
	}
	if o.Dynamic {
		name += "-dynamic"
	}
	return name + strings.Join(o.Flags, "")
}

func stepThrough(t *testing.T, s *Situation, exe string, b Build) (sum stepped) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, tid, err := s.Start(exe, b, os.Stderr)
	if errors.Is(err, ErrNotThere) {
		t.Logf("not with this compiler and way: %v", err)
		return sum
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c := &comparer{t: t, p: p, tid: tid, tables: tablesOf(t, p.Program), wrong: map[oracle.Top]int{}}
	var walked, scanned, unknown, compared int
	problems := map[string]int{}
	for n := 0; n < maxSteps && compared < maxCompared; n++ {
		truth, registers, err := p.Truth(tid)
		if err != nil {
			unknown++
			problems[err.Error()]++
		} else {
			walked++
			compared += len(truth.Frames)
			if truth.Top == oracle.TopScan {
				scanned++
			}
			c.compare(t, truth, registers)
		}
		if t.Failed() {
			return sum
		}
		if err := p.Step(tid); errors.Is(err, trace.ErrExited) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d walks compared, %d of them where the top is found by scanning; the walker's own rows were right against a scan %d times, "+
		"against GHC's rows %d times, %d times it did not come out; the oracle does not know %d: %v",
		walked, scanned, c.wrong[oracle.TopScan], c.wrong[oracle.TopRow], c.undecided, unknown, problems)
	return stepped{1, walked, compared, c.wrong[oracle.TopScan] + c.wrong[oracle.TopRow], c.undecided, unknown}
}

type comparer struct {
	t         *testing.T
	p         *Process
	tid       int
	tables    *Tables
	wrong     map[oracle.Top]int // wrong tops of the oracle, by how it found them
	undecided int
}

// compare walks with the walker and the oracle. The agent's rows, computed from the code,
// can be right where the oracle is wrong: its scan cannot distinguish the running code's own
// frames from its caller's, and GHC's rows have errors. Then the thread's own return
// decides.
func (c *comparer) compare(t *testing.T, truth *oracle.Truth, registers []uint64) {
	t.Helper()
	r, err := Walk(c.p.Target(c.tid, registers, c.tables, SnapshotFrames))
	if err != nil {
		t.Fatal(err)
	}
	d := Differences(&r, truth)
	if len(d) == 0 {
		return
	}
	if at, ok := c.topOf(&r, truth); ok && r.Flags&FlagTopCFI != 0 {
		theirs := truth.Sp + 8*uint64(int64(truth.Shift))
		switch {
		case truth.Top == oracle.TopScan && at > theirs && c.ownFrames(truth, at):
			c.wrong[truth.Top]++
			return
		case truth.Top == oracle.TopScan, truth.Top == oracle.TopRow:
			low := min(at, theirs)
			caller, err := c.p.IsCaller(c.tid, low)
			switch {
			case err == nil && caller == (low == at):
				c.wrong[truth.Top]++
				return
			case errors.Is(err, ErrNoReturn), errors.Is(err, trace.ErrExited):
				c.undecided++
				return
			case err != nil:
				t.Fatal(err)
			}
		}
		d = append(d, fmt.Sprintf("the walker takes the frame %d words from Sp for the caller's, the oracle that at %d",
			int64(at-truth.Sp)/8, truth.Shift))
	}
	var text strings.Builder
	if err := truth.WriteText(&text, c.p.Program.Name); err != nil {
		t.Fatal(err)
	}
	text.WriteString("the record:\n")
	for _, f := range r.Frames[:min(len(r.Frames), 40)] {
		text.WriteString("\t" + f.Kind.String() + " " + c.p.Program.Name(f.Address) + "\n")
	}
	t.Errorf("%s\nthe truth:\n%s\nstop %s", strings.Join(d, "\n"), text.String(), Stop(r.Stop))
}

// ownFrames reports whether all frames that a scan found above the one at sp can belong to
// the running code: their code is near it, or applies what it is about to evaluate.
func (c *comparer) ownFrames(truth *oracle.Truth, sp uint64) bool {
	const near = 64 << 10
	var pc uint64
	for _, f := range truth.Frames {
		if f.Sp == 0 {
			pc = f.Address
			continue
		}
		if f.Sp >= sp {
			return f.Sp == sp
		}
		name := c.p.Program.Name(f.Address)
		if f.Address-pc+near > 2*near && !strings.HasPrefix(name, "stg_ap_") && !strings.HasPrefix(name, "stg_restore_cccs") {
			return false
		}
	}
	return false
}

// topOf finds the frame that a record begins with.
func (c *comparer) topOf(r *Record, truth *oracle.Truth) (sp uint64, ok bool) {
	for words := range 64 {
		sp := truth.Sp + 8*uint64(words) - 8*8
		if other, err := truth.From(sp); err == nil {
			other.Top = oracle.TopScan // ignore the walker's flags
			if len(Differences(r, other)) == 0 {
				return sp, true
			}
		}
	}
	return 0, false
}
