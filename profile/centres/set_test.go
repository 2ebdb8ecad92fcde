package centres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
)

// A glob matches as * (any text), ? (one character) and \ (quoting) say, also for
// patterns that make backtracking exponential.
func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"Main.load*", "Main.loadPhase", true}, {"Main.load*", "Main.load", true}, {"Main.load*", "Main.reload", false},
		{"*", "", true}, {"", "", true}, {"", "x", false}, {"?", "é", true}, {"a*b*c", "a..b..b..c", true}, {"a*b*c", "a..c", false},
		{`M.\*`, "M.*", true}, {`M.\*`, "M.x", false}, {"*.*", "GHC.Base.++", true}, {"**x", "yx", true}, {`a\`, "a", false},
		{strings.Repeat("*a", 30), strings.Repeat("a", 29), false},
	} {
		if got := glob(c.pattern, c.text); got != c.want {
			t.Errorf("glob(%q, %q) is %v", c.pattern, c.text, got)
		}
	}
}

// A pattern is parsed into its name, level and glob and formatted back to an equal one; a
// malformed pattern gets an error that says why.
func TestCentrePatterns(t *testing.T) {
	for _, c := range []struct {
		text string
		want Pattern
		err  string
	}{
		{"Main.load*", Pattern{Glob: "Main.load*"}, ""},
		{"load=Main.load*", Pattern{Name: "load", Glob: "Main.load*"}, ""},
		{"io=module:System.*", Pattern{Name: "io", Level: profile.LevelModule, HasLevel: true, Glob: "System.*"}, ""},
		{"Data.Map.==", Pattern{Glob: "Data.Map.=="}, ""},
		{"GHC.Classes.<=", Pattern{Glob: "GHC.Classes.<="}, ""},
		{"@modules", Pattern{Preset: PresetModules}, ""},
		{"@nothing", Pattern{}, "unknown preset"},
		{"=x", Pattern{}, "no name"},
		{"module:", Pattern{}, "names nothing"},
		{"", Pattern{}, "names nothing"},
	} {
		got, err := ParsePattern(c.text)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: error %v, want %q", c.text, err, c.err)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%q: %+v %v", c.text, got, err)
		}
		if back, err := ParsePattern(got.String()); err != nil || back != got {
			t.Errorf("%q is written %q and read %+v %v", c.text, got.String(), back, err)
		}
	}
}

// A set file is read back as it was written, and an error names the line of a malformed
// file.
func TestCentreSets(t *testing.T) {
	set := Set{[]Pattern{{Glob: "Main.*"}, {Name: "io", Level: profile.LevelModule, HasLevel: true, Glob: "System.*"}, {Preset: PresetPackages}}}
	back, err := ParseSet(set.Format() + "\n# a comment\n")
	if err != nil || !slices.Equal(back.Patterns, set.Patterns) {
		t.Errorf("%v %v", back, err)
	}
	for _, c := range []struct {
		text string
		line int
		want string
	}{
		{"", 1, "empty"},
		{"Main.*\n", 1, "first line"},
		{"# hello\nccview cost centres 2\n", 2, "version 2"},
		{"ccview cost centres 0\n", 1, "version"},
		{"ccview cost centres 1\nMain.*\n@what\n", 3, "preset"},
		{"ccview cost centres 1\n" + strings.Repeat("x\n", maxSet+1), maxSet + 2, "more than"},
	} {
		_, err := ParseSet(c.text)
		var bad *SetError
		if !errors.As(err, &bad) || bad.Line != c.line || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v, want %q in line %d", c.text, err, c.want, c.line)
		}
	}
}

// Names that begin as comments and presets do are saved and read as names.
func TestSetOfOddNames(t *testing.T) {
	var set Set
	for _, text := range []string{"#", "##", "#.<", `\@.`, `\@bindings`, "#x=Main.f", `\@y=Main.f`, `\\#`, "Main.#", `\#`} {
		p, err := ParsePattern(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if p.Preset != NoPreset {
			t.Errorf("%q is a preset", text)
		}
		set.Patterns = append(set.Patterns, p)
	}
	if !glob(set.Patterns[4].Glob, "@bindings") || set.Patterns[5].Name != "#x" || set.Patterns[6].Name != "@y" {
		t.Errorf("%+v", set.Patterns)
	}
	back, err := ParseSet(set.Format())
	if err != nil || !slices.Equal(back.Patterns, set.Patterns) {
		t.Errorf("written as\n%s\nread as %+v, %v", set.Format(), back, err)
	}
}

// Every set that can be parsed is formatted to a text that parses to the same set.
func FuzzCentreSet(f *testing.F) {
	f.Add("ccview cost centres 1\nMain.*\nx=module:A\n@modules\n# no\n")
	f.Add("ccview cost centres 2\n")
	f.Add("ccview cost centres 1\n\\#a\n\\@b=c\n\\\\#\n")
	f.Fuzz(func(t *testing.T, text string) {
		set, err := ParseSet(text)
		if err != nil {
			return
		}
		back, err := ParseSet(set.Format())
		if err != nil || !slices.Equal(back.Patterns, set.Patterns) {
			t.Fatalf("%q is written\n%s\nand read %+v %v", text, set.Format(), back, err)
		}
	})
}

// The error for a pattern without a match suggests the name that is most similar.
func TestNearestNames(t *testing.T) {
	p := load(t, logtest.NBody().End())
	for query, want := range map[string]string{
		"Physics.pairwsie": "Physics.pairwise", "steps": "Physics.step", "Phisics": "Physics", "bas": "base", "Fysics.hs": "Physics.hs",
	} {
		c := centres(t, p, query)
		if len(c.Missed) != 1 || len(c.List) != 0 {
			t.Fatalf("%s: %+v", query, c)
		}
		if err := c.Missed[0].Error(); !strings.Contains(err, want) || !strings.Contains(err, query) {
			t.Errorf("%s: %s; want %s", query, err, want)
		}
	}
}

// A stack of more centres than are kept loses those below the topmost, and
// neither its topmost centre nor weight.
func TestDeepStacks(t *testing.T) {
	l := logtest.New()
	var frames []logtest.Frame
	const n = maxStackDepth + 500
	for i := range n {
		b := l.Binding("main", "Main", fmt.Sprintf("f%d", i), 0)
		frames = append(frames, l.Code(b, eventlog.QualityExact, eventlog.CategoryHaskell))
	}
	l.Sample(1, 10, l.Stack(frames...))
	l.Sample(2, 5, l.Stack(append(frames, frames[3], frames[n-2], frames[5])...))
	l.Sample(3, 2, l.Stack(append(frames[:n-1:n-1], frames[0])...))
	l.Sample(4, 1, l.Stack(frames[:4]...))
	p := load(t, l.End())
	for mode := range modes {
		c := Attribute(p.Select(profile.Filter{}), centres(t, p, "@bindings"), mode)
		got := make(map[string]uint64)
		for _, r := range c.ByCentre {
			if r.Individual > 0 {
				got[r.Centre.Name] = r.Individual
			}
		}
		want := fmt.Sprint(map[string]uint64{fmt.Sprintf("Main.f%d", n-1): 10, "Main.f5": 5, "Main.f0": 2, "Main.f3": 1})
		if fmt.Sprint(got) != want || c.Deep != 17 {
			t.Errorf("%v: %v, want %s; %d deep", mode, got, want, c.Deep)
		}
	}
}
