package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// compared is what ccview diff says of two groups of runs.
type compared struct {
	Whole float64 `json:"whole_p"`
	Total struct {
		Verdict   string
		Low, High float64
	}
	Rows []struct {
		Element, Verdict string
		Low, High        float64
	}
}

// verdicts are the elements that have one; each must agree with its interval.
func (c *compared) verdicts(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, r := range c.Rows {
		differs := r.Low > 0 || r.High < 0
		switch r.Verdict {
		case "slower", "faster", "more", "less":
			if !differs {
				t.Errorf("%s is %s, and its difference from %g to %g", r.Element, r.Verdict, r.Low, r.High)
			}
			out[r.Element] = r.Verdict
		case "moved":
			out[r.Element] = r.Verdict
		default:
			if differs {
				t.Errorf("%s has no verdict, and a difference from %g to %g", r.Element, r.Low, r.High)
			}
		}
	}
	return out
}

// Two groups of runs of one build do not differ; of a build whose Main.one does twice the work, that is
// slower and nothing else of the program's; where Main.one and Main.three change places, their
// costs have moved.
func TestDiffOfBuilds(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testprog.Source(t, "spin31"), "Main.hs"))
	if err != nil {
		t.Fatal(err)
	}
	const work = "(one n (three (3 * n) acc))"
	build := func(instead string) string {
		dir := t.TempDir()
		changed := strings.Replace(string(text), work, instead, 1)
		if changed == string(text) && instead != work {
			t.Fatalf("spin31 has no %s", work)
		}
		if err := os.WriteFile(filepath.Join(dir, "Main.hs"), []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
		testprog.Compile(t, "", dir, "-v0", "-O2", "-g3", "Main.hs", "-o", "spin31")
		return filepath.Join(dir, "spin31")
	}
	// Groups of runs are made in turns: what else the machine does meanwhile comes to all of them.
	runs := func(exes ...string) []string {
		groups := make([]string, len(exes))
		for range 4 {
			for i, exe := range exes {
				log, _ := record(t, []string{"-e", "cycles", "-F", "997", "--max-overhead", "0"}, exe, "4000")
				groups[i] = strings.TrimPrefix(groups[i]+","+log, ",")
			}
		}
		return groups
	}
	diff := func(a, b string) (c compared, found map[string]string) {
		view(t, &c, "diff", a, b, "--top", "0")
		found = c.verdicts(t)
		t.Logf("p %.4f, in all %q, %v", c.Whole, c.Total.Verdict, found)
		return c, found
	}
	plain := build(work)
	groups := runs(plain, plain, build("(one (2 * n) (three (3 * n) acc))"), build("(one (3 * n) (three n acc))"))
	base := groups[0]

	// One comparison in twenty may have a false verdict: that is what the test allows.
	if _, found := diff(base, groups[1]); len(found) > 0 {
		again := runs(plain, plain)
		if _, found = diff(again[0], again[1]); len(found) > 0 {
			t.Errorf("the same build twice: %v", found)
		}
	}
	if c, found := diff(base, groups[2]); found["Main.one"] != "slower" || found["Main.three"] != "" || c.Whole > 0.05 {
		t.Errorf("of twice the work in Main.one: p %.4f, %v", c.Whole, found)
	}
	if _, found := diff(base, groups[3]); found["Main.one"] != "moved" || found["Main.three"] != "moved" {
		t.Errorf("of costs that moved: %v", found)
	}
}
