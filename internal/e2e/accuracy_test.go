package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// endless is a number of rounds that no machine gets through in a test.
const endless = "1000000000"

// Morgan & Jarvis 1998, section 3.1: the flat profile shows rev as the cost, the stacks show
// that h causes it.
func TestRevIsReachedThroughH(t *testing.T) {
	log := recordSeconds(t, 6, testprog.Build(t, "rev", testprog.Options{}), "220", endless)
	l := readLog(t, log)
	l.wantWhole(t)

	var mutator, rev, throughH, throughG int
	for _, s := range l.samples {
		if !inHaskell(s) {
			continue
		}
		mutator++
		frames := l.frames(s)
		if len(frames) == 0 || l.source(frames[0]) != "rev" {
			continue
		}
		rev++
		callers := map[string]bool{}
		for _, f := range frames {
			callers[l.source(f)] = true
		}
		if callers["h"] {
			throughH++
			for _, want := range []string{"j", "f", "c", "a"} {
				if !callers[want] {
					t.Fatalf("a stack through h misses %s", want)
				}
			}
		}
		if callers["g"] {
			throughG++
		}
	}
	t.Logf("%d samples in Haskell code, %d in rev, of these %d through h and %d through g", mutator, rev, throughH, throughG)
	if mutator < 1000 {
		t.Errorf("only %d samples in Haskell code", mutator)
	}
	wantShareAbove(t, "rev of Haskell code", rev, mutator, 0.95)
	// By instructions h's calls take 25 times what g's do.
	if throughG == 0 || throughH < 10*throughG {
		t.Errorf("rev was reached %d times through h and %d times through g", throughH, throughG)
	}

	// The viewer shows the same.
	h := hotOf(t, log)
	if got := h.element(t, "Main.rev"); got.Share < 0.95*float64(mutator)/float64(len(l.samples)) {
		t.Errorf("hot: Main.rev has share %.3f of all samples, of which %d of %d are Haskell code", got.Share, mutator, len(l.samples))
	}
	var st stacksJSON
	view(t, &st, "stacks", log)
	viaH, viaG := st.Root.through("Main.h"), st.Root.through("Main.g")
	if viaG <= 0 || viaH < 10*viaG {
		t.Errorf("stacks: %.0f through h, %.0f through g", viaH, viaG)
	}
}

// Two functions that take 3 : 1 of the time have samples 3 : 1.
func TestSharesOfThreeToOne(t *testing.T) {
	log := recordSeconds(t, 6, testprog.Build(t, "spin31", testprog.Options{}), endless)
	l := readLog(t, log)
	l.wantWhole(t)
	var three, one int
	for _, s := range l.samples {
		if frames := l.frames(s); len(frames) > 0 {
			switch l.source(frames[0]) {
			case "three":
				three++
			case "one":
				one++
			}
		}
	}
	if three+one < 1000 {
		t.Errorf("only %d samples in the two functions, of %d", three+one, len(l.samples))
	}
	wantShare(t, "three", three, three+one, 0.75)

	h := hotOf(t, log)
	total := h.element(t, "Main.three").Samples + h.element(t, "Main.one").Samples
	wantShare(t, "hot: Main.three", h.element(t, "Main.three").Samples, total, 0.75)
}

// Every sample of a Haskell thread carries that thread's id and capability, and as many
// frames as the thread has.
func TestThreadsAndCapabilities(t *testing.T) {
	exe := testprog.Build(t, "threads100", testprog.Options{Threaded: true})
	log, r := record(t, []string{"--max-overhead", "0", "-F", "997"}, exe, "5000", "100", "4", "+RTS", "-N2")
	l := readLog(t, log)
	l.wantWhole(t)

	threads := parseThreads(t, r.stdout)
	if len(threads) != 104 {
		t.Fatalf("the program has %d threads, want 104", len(threads))
	}
	sampled := map[uint64]int{}
	kernelThreads := map[uint64]map[uint32]bool{}
	for _, s := range l.samples {
		frames := l.frames(s)
		if !inHaskell(s) || len(frames) == 0 || l.source(frames[0]) != "bottom" {
			continue
		}
		th, ok := threads[s.TSO]
		if !ok {
			t.Fatalf("a sample of thread %d in bottom: no such thread works there", s.TSO)
		}
		sampled[s.TSO]++
		if kernelThreads[s.TSO] == nil {
			kernelThreads[s.TSO] = map[uint32]bool{}
		}
		kernelThreads[s.TSO][s.TID] = true
		if !th.bound && s.Capability != th.cap {
			t.Fatalf("a sample of thread %d on capability %d, want %d", s.TSO, s.Capability, th.cap)
		}
		if s.Capability > 1 {
			t.Fatalf("a sample of thread %d on capability %d, of 2", s.TSO, s.Capability)
		}
		depth := int(s.FoldedFrames) // only down repeats
		for _, f := range frames {
			if f.Kind == eventlog.FrameReturn && l.source(f) == "down" {
				depth++
			}
		}
		if depth != th.depth {
			t.Fatalf("a stack of thread %d has %d frames of down, want %d (stop: %v)", s.TSO, depth, th.depth, s.Stop)
		}
	}
	for tso, th := range threads {
		if sampled[tso] == 0 {
			t.Errorf("thread %d (bound: %v) has no sample", tso, th.bound)
		}
		if th.bound && len(kernelThreads[tso]) > 1 {
			t.Errorf("bound thread %d was seen on kernel threads %v", tso, kernelThreads[tso])
		}
	}
}

type haskellThread struct {
	cap   uint32
	depth int
	bound bool
}

var threadLine = regexp.MustCompile(`(?m)^(thread|bound) (\d+) cap (\d+|-) depth (\d+)$`)

func parseThreads(t *testing.T, output string) map[uint64]haskellThread {
	t.Helper()
	threads := map[uint64]haskellThread{}
	for _, m := range threadLine.FindAllStringSubmatch(output, -1) {
		tso, err := strconv.ParseUint(m[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		th := haskellThread{bound: m[1] == "bound"}
		fmt.Sscan(m[3], &th.cap)
		fmt.Sscan(m[4], &th.depth)
		threads[tso] = th
	}
	return threads
}

// Of samples in Haskell code whose stack top is certain, 95 % reach the stack's root or
// the frame budget.
func TestStacksReachTheirRoot(t *testing.T) {
	for _, p := range []struct {
		name string
		opts testprog.Options
		args []string
	}{
		{"alloc31", testprog.Options{}, []string{endless}},
		{"deep", testprog.Options{}, []string{"recursion", "50000", endless}},
		{"deep", testprog.Options{}, []string{"thunks", "20000", endless}},
		{"example", testprog.Options{}, []string{endless}},
		{"exceptions", testprog.Options{}, []string{"20", endless}},
		{"fac", testprog.Options{}, []string{"1000", endless}},
		{"ffi", testprog.Options{Threaded: true}, []string{endless}},
		{"fusion", testprog.Options{}, []string{"1000", endless}},
		{"maps", testprog.Options{}, []string{"200000", endless}},
		// Unoptimised it makes a thunk for each round before the first is evaluated, so
		// the rounds are fewer and long: minutes in all.
		{"rev", testprog.Options{O0: true}, []string{"550", "20000"}},
		{"spin31", testprog.Options{NoDebug: true}, []string{endless}},
		{"stm", testprog.Options{}, []string{endless}},
	} {
		t.Run(p.name, func(t *testing.T) {
			log := recordSeconds(t, 1, testprog.Build(t, p.name, p.opts), p.args...)
			l := readLog(t, log)
			l.wantWhole(t)
			var n, reached int
			stops := map[eventlog.StopReason]int{}
			for _, s := range l.samples {
				stops[s.Stop]++
				if !inHaskell(s) || s.Stop == eventlog.StopTopAmbiguous {
					continue
				}
				n++
				if s.Stop.Complete() || s.Stop == eventlog.StopBudget {
					reached++
				}
			}
			t.Logf("%d samples, stops: %v", len(l.samples), stops)
			if n < 100 {
				t.Errorf("only %d samples in Haskell code", n)
			}
			wantShareAbove(t, "root or budget reached", reached, n, 0.95)
		})
	}
}
