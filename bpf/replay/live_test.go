//go:build linux && cgo && amd64

package replay

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ccagent/bpf/replay/oracle"
	"ccagent/bpf/replay/trace"
	"ccagent/internal/testprog"
)

// How many instructions are executed from each situation on, and how many frames
// are compared then at the most.
const (
	maxSteps    = 1000
	maxCompared = 500_000
)

// Every situation, and the instructions after it one by one: the walker over
// the process's memory tells the truth at each.
func TestAgainstOracle(t *testing.T) {
	for _, o := range []testprog.Options{
		{}, {O0: true}, {Threaded: true}, {Prof: true}, {O0: true, Threaded: true, Prof: true}, {NoDebug: true}, {Dynamic: true},
	} {
		t.Run(wayName(o), func(t *testing.T) {
			exe := testprog.Build(t, "situations", o)
			_, version := testprog.GHC(t, o.GHC)
			b := Build{GHC: version, Threaded: o.Threaded, Profiled: o.Prof}
			for i := range Situations {
				s := &Situations[i]
				t.Run(s.Name, func(t *testing.T) { stepThrough(t, s, exe, b) })
			}
		})
	}
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
	return name
}

func stepThrough(t *testing.T, s *Situation, exe string, b Build) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, tid, err := s.Start(exe, b, os.Stderr)
	if errors.Is(err, ErrNotThere) {
		t.Logf("not with this compiler and way: %v", err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	tables := tablesOf(t, p.Program)
	var walked, scanned, unknown, compared int
	problems := map[string]int{}
	for n := 0; n < maxSteps && compared < maxCompared; n++ {
		truth, registers, err := p.Truth(tid)
		if err != nil {
			unknown++
			problems[err.Error()]++
			if os.Getenv("DBG") != "" {
				truth.WriteText(os.Stderr, p.Program.Name)
			}
		} else {
			walked++
			compared += len(truth.Frames)
			if truth.Top == oracle.TopScan {
				scanned++
			}
			compare(t, p, tid, truth, registers, tables)
		}
		if t.Failed() {
			return
		}
		if err := p.Step(tid); errors.Is(err, trace.ErrExited) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d walks compared, %d of them where the top is found by scanning; the oracle does not know %d: %v", walked, scanned, unknown, problems)
}

func compare(t *testing.T, p *Process, tid int, truth *oracle.Truth, registers []uint64, tables *Tables) {
	t.Helper()
	r, err := Walk(p.Target(tid, registers, tables, SnapshotFrames))
	if err != nil {
		t.Fatal(err)
	}
	d := Differences(&r, truth)
	if len(d) > 0 && truth.Top == oracle.TopScan && r.Flags&FlagTopCFI != 0 {
		// The agent has worked out rows for code that came without any.
		// The oracle cannot tell which frame is the first, but all the
		// others are known.
		for first := 2; first < min(len(truth.Frames), 32) && len(d) > 0; first++ {
			other := *truth
			other.Frames = slices.Concat(truth.Frames[:1], truth.Frames[first:])
			d = Differences(&r, &other)
		}
	}
	if len(d) > 0 {
		var text strings.Builder
		if err := truth.WriteText(&text, p.Program.Name); err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Frames[:min(len(r.Frames), 40)] {
			text.WriteString("\t" + f.Kind.String() + " " + p.Program.Name(f.Address) + "\n")
		}
		t.Errorf("%s\nthe truth:\n%s\nstop %s", strings.Join(d, "\n"), text.String(), Stop(r.Stop))
	}
}
