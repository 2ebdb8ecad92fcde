package export

import (
	"bufio"
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ccagent/profile"
	"ccagent/profile/stacks"
)

// collapsed reads folded stacks as flamegraph.pl does: the number after the last
// space is the weight.
func collapsed(t *testing.T, b []byte) map[string]uint64 {
	t.Helper()
	out := make(map[string]uint64)
	for line := range strings.Lines(string(b)) {
		m := regexp.MustCompile(`^(.*)\s+(\d+(?:\.\d*)?)$`).FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			t.Fatalf("line %q is no folded stack", line)
		}
		n, err := strconv.ParseUint(m[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := out[m[1]]; twice {
			t.Errorf("stack %q twice", m[1])
		}
		out[m[1]] = n
	}
	return out
}

func total(m map[string]uint64) (sum uint64) {
	for n := range maps.Values(m) {
		sum += n
	}
	return sum
}

func folded(t *testing.T, s *profile.Selection, o Options) map[string]uint64 {
	var b bytes.Buffer
	if err := Folded(&b, s, o); err != nil {
		t.Fatal(err)
	}
	return collapsed(t, b.Bytes())
}

// The weights of a folded export add up to the selection's, with and without causes.
func TestFoldedConservesTotals(t *testing.T) {
	each(t, func(t *testing.T, ss []*profile.Selection) {
		for _, s := range ss {
			for _, o := range []Options{{}, {Causes: true}, {Causes: true, Level: profile.LevelSpan}} {
				if got := total(folded(t, s, o)); got != s.Total {
					t.Errorf("%s %+v: %d of %d", s.EventDef().Name(), o, got, s.Total)
				}
			}
		}
	})
}

// Folded stacks and the call tree are the same stacks.
func TestFoldedIsTheCallTree(t *testing.T) {
	each(t, func(t *testing.T, ss []*profile.Selection) {
		for _, s := range ss {
			want := make(map[string]uint64)
			words := regexp.MustCompile(`… [0-9–]+ words skipped`)
			stacks.TreeOf(s, stacks.Options{MaxDepth: -1}).Folded(func(stack string, w uint64) {
				want[words.ReplaceAllString(stack, "… words skipped")] += w
			})
			// The tree has a separate root for the reason of an incomplete stack.
			if got := folded(t, s, Options{}); !maps.Equal(got, want) {
				t.Errorf("%s:\n%v\nthe tree has\n%v", s.EventDef().Name(), got, want)
			}
		}
	})
}

// With Causes, a folded stack ends in the leaf's other causes, marked [i], innermost
// last.
func TestFoldedCauses(t *testing.T) {
	s := load(t, twoEvents()).Select(profile.Filter{})
	got := folded(t, s, Options{Causes: true})
	const want = "Main.main;Physics.step;Physics.pairwise;Physics.step_[i]"
	if got[want] != 40_000_000 {
		t.Errorf("%d ns of %s in %v", got[want], want, got)
	}
	spans := folded(t, s, Options{Causes: true, Level: profile.LevelSpan})
	const inner = "src/Physics.hs:10:31-10:41_[i]"
	if !slices.ContainsFunc(slices.Collect(maps.Keys(spans)), func(k string) bool { return strings.HasSuffix(k, inner) }) {
		t.Errorf("no stack ends in the innermost span %s: %v", inner, spans)
	}
}

// scriptSample is a sample as stackcollapse-perf.pl reads it.
type scriptSample struct {
	comm, event string
	weight      uint64
	stack       []string // root first
}

var (
	scriptHead  = regexp.MustCompile(`^(\S.+?)\s+(\d+)/*(\d+)*\s+`)
	scriptEvent = regexp.MustCompile(`:\s*(\d+)*\s+(\S+):\s*$`)
	scriptFrame = regexp.MustCompile(`^\s*(\w+)\s*(.+) \((.*)\)`)
)

// collapsePerf reads perf script's text by the rules of stackcollapse-perf.pl.
func collapsePerf(t *testing.T, text []byte) []scriptSample {
	t.Helper()
	var all []scriptSample
	var at *scriptSample
	for sc := bufio.NewScanner(bytes.NewReader(text)); sc.Scan(); {
		line := sc.Text()
		switch {
		case strings.HasPrefix(line, "#"):
		case line == "":
			if at != nil {
				slices.Reverse(at.stack)
				all = append(all, *at)
			}
			at = nil
		case scriptHead.MatchString(line):
			h, e := scriptHead.FindStringSubmatch(line), scriptEvent.FindStringSubmatch(line)
			if e == nil {
				t.Fatalf("no event in %q", line)
			}
			n, err := strconv.ParseUint(e[1], 10, 64)
			if err != nil {
				t.Fatalf("no period in %q", line)
			}
			at = &scriptSample{comm: h[1], event: e[2], weight: n}
		case scriptFrame.MatchString(line):
			m := scriptFrame.FindStringSubmatch(line)
			if strings.HasPrefix(m[2], "(") {
				continue // the reader mistakes it for a process name
			}
			at.stack = append(at.stack, m[2])
		default:
			t.Fatalf("unrecognised line %q", line)
		}
	}
	if at != nil {
		t.Error("the last sample is not ended")
	}
	return all
}

// The periods and samples of a perf script export add up to each selection's weight and
// number of samples.
func TestPerfScriptConservesTotals(t *testing.T) {
	each(t, func(t *testing.T, ss []*profile.Selection) {
		weight, count := make(map[string]uint64), make(map[string]uint64)
		for _, s := range collapsePerf(t, write(t, PerfScript, ss, Options{})) {
			weight[s.event] += s.weight
			count[s.event]++
			if len(s.stack) == 0 || s.comm == "" {
				t.Fatalf("sample %+v", s)
			}
		}
		for _, s := range ss {
			if n := s.EventDef().Name(); weight[n] != s.Total || count[n] != s.Samples {
				t.Errorf("%s: %d in %d samples, want %d in %d", n, weight[n], count[n], s.Total, s.Samples)
			}
		}
	})
}

// The standard reader of perf script text finds the stacks and commands of a hand-made
// log.
func TestPerfScriptStacks(t *testing.T) {
	ss := both(load(t, twoEvents()), profile.Filter{})
	by := make(map[string]int)
	for _, s := range collapsePerf(t, write(t, PerfScript, ss, Options{})) {
		by[s.comm+": "+strings.Join(s.stack, ";")]++
	}
	for stack, n := range map[string]int{
		"a_b: Main.main;Physics.step;Physics.pairwise;Physics.pairwise;Physics.pairwise": 40,
		"a_b: evacuate":                        10,
		"a_b: Alloc.build;all;Alloc.build;all": 30,
		"a_b: Main.main;Physics.step;[kernel]": 3,
	} {
		if by[stack] != n {
			t.Errorf("%d samples of %s, want %d, in %v", by[stack], stack, n, by)
		}
	}
}
