package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

type rootsProgram struct {
	name string
	args []string
	o0   string // the last of args with -O0, where that takes many times as long
}

// rootsPrograms are all test programs that run long enough to be sampled, for some tenths of
// a second each. With -O0 the stack of n-body is as deep as its number of steps, so it gets
// few: stacks of more than 64 MiB are not followed to the root.
var rootsPrograms = []rootsProgram{
	{"alloc31", []string{"15000"}, "2000"},
	{"arrays", []string{"3000"}, ""},
	{"classic", []string{"binary-trees", "20"}, "17"},
	{"classic", []string{"exp3", "10"}, ""},
	{"classic", []string{"fannkuch", "9"}, "8"},
	{"classic", []string{"integer", "40000"}, "20000"},
	{"classic", []string{"k-nucleotide", "40000"}, "20000"},
	{"classic", []string{"lcss", "600"}, ""},
	{"classic", []string{"n-body", "500000"}, "100000"},
	{"classic", []string{"pidigits", "3000"}, ""},
	{"classic", []string{"primes", "100000"}, "30000"},
	{"classic", []string{"spectral-norm", "700"}, "200"},
	{"deep", []string{"recursion", "50000", "100"}, ""},
	{"deep", []string{"thunks", "50000", "30"}, ""},
	{"example", []string{"300000"}, "100000"},
	{"exceptions", []string{"20", "100"}, "5"},
	{"fac", []string{"1000", "100000"}, "5000"},
	{"ffi", []string{"30"}, ""},
	{"fork", []string{"2", "100000000"}, "5000000"},
	{"fusion", []string{"1000", "100000"}, "5000"},
	{"kernel", []string{"3"}, ""},
	{"maps", []string{"20000", "12"}, "3"},
	{"rev", []string{"220", "2000"}, "200"},
	{"server", []string{"3000", "20", "4"}, ""},
	{"situations", []string{"apply", "300000"}, ""},
	{"situations", []string{"arguments", "300000"}, ""},
	{"situations", []string{"catch", "100000"}, ""},
	{"situations", []string{"masked", "100000"}, ""},
	{"spin31", []string{"4000"}, "200"},
	{"stm", []string{"200"}, "10"},
	{"threads100", []string{"300", "100", "4"}, ""},
	{"waits", []string{"20"}, ""},
}

var rootsWays = []struct {
	name string
	opts testprog.Options
}{
	{"plain", testprog.Options{}},
	{"threaded", testprog.Options{Threaded: true}},
	{"prof", testprog.Options{Prof: true}},
	{"O0", testprog.Options{O0: true}},
	{"dynamic", testprog.Options{Dynamic: true}},
	{"pie", testprog.Options{Dynamic: true, Flags: []string{"-fPIC", "-pie"}}},
	{"split-sections", testprog.Options{Flags: []string{"-split-sections"}}},
	{"stripped", testprog.Options{NoDebug: true, Strip: true, Flags: []string{"-split-sections"}}},
}

// endings counts how the walks of samples ended.
type endings struct {
	root, recovered int
	others          map[eventlog.StopReason]int
}

func (e *endings) add(s eventlog.StopReason) {
	switch s {
	case eventlog.StopRoot:
		e.root++
	case eventlog.StopRecovered:
		e.recovered++
	default:
		if e.others == nil {
			e.others = map[eventlog.StopReason]int{}
		}
		e.others[s]++
	}
}

func (e *endings) complete() int { return e.root + e.recovered }

func (e *endings) total() int {
	n := e.complete()
	for _, k := range e.others {
		n += k
	}
	return n
}

// reasons lists the other endings, the most frequent first.
func (e *endings) reasons() string {
	var stops []eventlog.StopReason
	for s := range e.others {
		stops = append(stops, s)
	}
	slices.SortFunc(stops, func(a, b eventlog.StopReason) int { return e.others[b] - e.others[a] })
	var text []string
	for _, s := range stops {
		text = append(text, fmt.Sprintf("%s %d", s, e.others[s]))
	}
	return strings.Join(text, ", ")
}

// roots sums up the samples of programs. A sample is of Haskell code if its walk began in
// Haskell code, or if it says that it did not but the code's name is Haskell's.
type roots struct {
	programs               int
	haskell, viaC, context endings
	byRow, atSp, byScan    int
	kernel, loader, c      int // in none of the three; the kernel's own include those without a stack
}

func (r *roots) add(l *capturedLog, s eventlog.Sample) (odd bool) {
	leaf, category, loader := eventlog.Node{}, eventlog.CategoryUnresolved, false
	if s.Node != 0 {
		leaf = l.nodes[s.Node]
		category = l.locations[place{leaf.Module, leaf.Addr}].Category
		loader = strings.HasPrefix(filepath.Base(l.modules[leaf.Module]), "ld-")
	}
	named := category == eventlog.CategoryHaskell || category == eventlog.CategorySTG
	inC := category == eventlog.CategoryGC || category == eventlog.CategoryRTS || category == eventlog.CategoryForeign
	flagged := func(f eventlog.SampleFlags) bool { return s.Flags&f != 0 }
	switch {
	case flagged(eventlog.SampleContext):
		r.context.add(s.Stop)
	case flagged(eventlog.SampleViaC), !s.Stop.Complete() && s.Stop != eventlog.StopNoHaskell && l.hasC(s):
		r.viaC.add(s.Stop)
	case s.Stop == eventlog.StopNoHaskell && loader:
		r.loader++
		return false
	case s.Stop == eventlog.StopNoUserContext, flagged(eventlog.SampleInKernel) && s.Stop == eventlog.StopNoHaskell:
		r.kernel++
		return false
	case s.Stop == eventlog.StopNoHaskell && !named, s.Stop == eventlog.StopCUnwind && inC:
		r.c++
		return s.Stop == eventlog.StopCUnwind
	default:
		r.haskell.add(s.Stop)
		switch {
		case flagged(eventlog.SampleTopScanned):
			r.byScan++
		case flagged(eventlog.SampleTopCFI):
			r.byRow++
		case s.Stop.Complete():
			r.atSp++
		}
	}
	return !s.Stop.Complete()
}

// Walks that begin in Haskell code end at the stack's root, for every release and way of
// compiling. It prints a row of a table for each.
func TestRootsMatrix(t *testing.T) {
	needMatrix(t, "scripts/bench roots")
	testprog.Each(t, func(t *testing.T, ghc string) {
		for _, w := range rootsWays {
			t.Run(w.name, func(t *testing.T) {
				var sum roots
				for _, p := range rootsPrograms {
					if w.opts.O0 && p.name == "deep" {
						continue // its accumulator is a chain of millions of thunks: more than 64 MiB of stack
					}
					o := w.opts
					o.Release = ghc
					args := slices.Clone(p.args)
					if o.O0 && p.o0 != "" {
						args[len(args)-1] = p.o0
					}
					exe := testprog.Build(t, p.name, o)
					log, _ := record(t, []string{"--quiet", "-e", "cpu-clock", "-F", "9997", "--max-overhead", "0", "--no-embed-source"}, exe, args...)
					l := readLog(t, log)
					l.wantWhole(t)
					var own roots
					odd := map[string]int{}
					for _, s := range l.samples {
						sum.add(l, s)
						if own.add(l, s) {
							odd[l.story(s)]++
						}
					}
					sum.programs++
					t.Logf("%s %s: %d samples, %d in Haskell code, %d at the root; by row %d, at Sp %d, by scan %d", p.name, strings.Join(args, " "),
						len(l.samples), own.haskell.total(), own.haskell.complete(), own.byRow, own.atSp, own.byScan)
					for story, n := range odd {
						t.Logf("%d × %s", n, story)
					}
				}
				h := &sum.haskell
				share := float64(h.complete()) / float64(max(h.total(), 1))
				fmt.Printf("| %s | %s | %d | %d | %d | %d | %.3f %% | %s | %d : %d : %d | %d, %s | %d, %s | %d : %d : %d |\n",
					release(ghc), w.name, sum.programs, h.total(), h.root, h.recovered, 100*share, h.reasons(),
					sum.byRow, sum.atSp, sum.byScan, sum.viaC.total(), sum.viaC.reasons(), sum.context.total(), sum.context.reasons(),
					sum.c, sum.kernel, sum.loader)
				if share < 0.999 {
					t.Errorf("%d of %d stacks are complete", h.complete(), h.total())
				}
			})
		}
	})
}

// hasC reports whether a sample's stack has C code that was called.
func (l *capturedLog) hasC(s eventlog.Sample) bool {
	return slices.ContainsFunc(l.frames(s), func(n eventlog.Node) bool { return n.Kind == eventlog.FrameC })
}

// story describes where a sample's walk began and why it ended.
func (l *capturedLog) story(s eventlog.Sample) string {
	text := fmt.Sprintf("%s, flags %#x:", s.Stop, uint16(s.Flags))
	frames := l.frames(s)
	for _, n := range frames[:min(len(frames), 6)] {
		loc := l.locations[place{n.Module, n.Addr}]
		text += fmt.Sprintf(" %d:%s+%#x(%s %s+%d)", n.Kind, filepath.Base(l.modules[n.Module]), n.Addr, loc.Category, l.bindings[loc.Binding].Name, loc.Offset)
	}
	return fmt.Sprintf("%s … %d frames", text, len(frames))
}
