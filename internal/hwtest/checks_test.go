package hwtest_test

import (
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// hotJSON and the others are the fields of ccview's JSON that are looked at.
type hotJSON struct {
	Samples int
	Rows    []struct {
		Element string
		Share   float64
		Samples int
	}
}

type infoJSON struct {
	Program  struct{ Start time.Time }
	Duration float64 `json:"duration_seconds"`
	GHC      struct{ Version, Way string }
	Events   []struct {
		Name, Fallback                   string
		Samples, Weight, Lost, Throttled float64
		Sampling                         struct{ Method string }
	}
	Stacks struct {
		Complete, Truncated, Failed float64
		Reasons                     map[string]float64
	}
}

type stacksJSON struct {
	Total float64
	Root  *stackNode
}

type stackNode struct {
	Name, Module, Category string
	Self, Total            float64
	Children               []*stackNode
}

// through sums the weight of stacks that have the named code in them.
func (n *stackNode) through(name string) float64 {
	if n.Name == name || n.Module+"."+n.Name == name {
		return n.Total
	}
	sum := 0.0
	for _, c := range n.Children {
		sum += c.through(name)
	}
	return sum
}

// enough are a third or less of the samples that jobs have on machines whose time is counted, where that is a function of the
// program.
const enough = 100

// wantWhole checks that no sample of the event was lost, that there are at least so many, and that the walks of Haskell code
// are complete.
func wantWhole(t *testing.T, log, event string, least float64) (samples float64) {
	t.Helper()
	var info infoJSON
	view(t, &info, "info", log)
	for _, e := range info.Events {
		if e.Name != event {
			continue
		}
		samples = e.Samples
		if e.Lost != 0 || e.Samples < least {
			t.Errorf("%s: %+v", log, e)
		}
	}
	if samples == 0 {
		t.Fatalf("%s: no %s in %+v", log, event, info.Events)
	}
	s := info.Stacks
	t.Logf("%s: GHC %s, %v samples of %s; %v complete, %v truncated, %v failed %v",
		filepath.Base(log), info.GHC.Version, samples, event, s.Complete, s.Truncated, s.Failed, s.Reasons)
	if n := s.Complete + s.Truncated + s.Failed; s.Complete < 0.99*n-sigmas*math.Sqrt(0.01*0.99*n) {
		t.Errorf("%s: less than 99 %% of the stacks are complete", log)
	}
	return samples
}

// wantRev checks a profile of the program rev: the time of its own code is rev's.
func wantRev(t *testing.T, log, event string, least float64) (samples float64) {
	t.Helper()
	samples = wantWhole(t, log, event, least)
	var hot hotJSON
	view(t, &hot, "hot", log, "--event", event, "--level", "binding")
	// The kernel's part depends on the emulator.
	rev, others := 0.0, 0.0
	for _, r := range hot.Rows {
		switch {
		case r.Element == "Main.rev":
			rev = r.Share
		case !strings.HasPrefix(r.Element, "("):
			others += r.Share
		}
	}
	if rev == 0 || rev < others {
		t.Errorf("%s: Main.rev is not on top: %+v", log, hot.Rows)
	}
	return samples
}

// wantDeep checks a profile of the program deep: its stacks contain both ends.
func wantDeep(t *testing.T, log string) {
	t.Helper()
	wantWhole(t, log, "cycles", enough)
	var stacks stacksJSON
	view(t, &stacks, "stacks", log, "--event", "cycles")
	bottom := stacks.Root.through("Main.bottom")
	if bottom < 0.2*stacks.Total {
		t.Errorf("%s: %v of %v are in Main.bottom", log, bottom, stacks.Total)
	}
	if main := stacks.Root.through("Main.main"); main < 0.99*bottom {
		t.Errorf("%s: %v come from Main.main, %v are in Main.bottom", log, main, bottom)
	}
}

// wantLine fails unless one line of text holds all the words.
func wantLine(t *testing.T, text string, words ...string) {
	t.Helper()
	whole := regexp.MustCompile(`\n {20,}`).ReplaceAllString(text, " ") // what was wrapped
	for line := range strings.Lines(whole) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			return
		}
	}
	t.Errorf("no line with %q in\n%s", words, text)
}

// wantUnplugged checks a profile of a program that runs on a CPU that was taken away and brought
// back: the event is opened on it again.
func wantUnplugged(t *testing.T, log string) {
	t.Helper()
	var line struct{ Samples []int }
	view(t, &line, "timeline", log, "--event", "cycles")
	all, last := 0, 0
	for i, n := range line.Samples {
		all += n
		if i >= len(line.Samples)*3/4 {
			last += n
		}
	}
	t.Logf("%s: %d samples, %d of them in the last quarter", filepath.Base(log), all, last)
	// The host decides how many: CPUs that run at once have no counted time.
	if all < 30 || last < all/10 {
		t.Errorf("%s: %d of %d samples are of the last quarter: %v", log, last, all, line.Samples)
	}
}
