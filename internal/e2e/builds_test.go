package e2e

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/ghc"
	"ccagent/internal/testprog"
	"ccagent/symbolize/binary"
)

// buildForm compiles a program in a form that has a way.
func buildForm(t *testing.T, name string, form ghc.Form, o testprog.Options) string {
	t.Helper()
	own := o.Release == ""
	whole := func(flags ...string) string {
		o := o
		o.Flags = append(append([]string{}, o.Flags...), flags...)
		return testprog.Build(t, name, o)
	}
	switch form {
	case ghc.Linked:
		return whole(testprog.Chrooted(t, o.Release)...)
	case ghc.Static:
		if !own {
			return whole() // a release's programs are
		}
		return whole("-optl-static")
	case ghc.StaticMusl:
		return testprog.BuildMusl(t, name, o)
	case ghc.Sections:
		return whole("-split-sections")
	case ghc.Shared:
		o.Dynamic = true
		return whole()
	case ghc.SharedPIE:
		o.Dynamic, o.NoDebug = true, true
		return whole("-fPIC", "-pie")
	case ghc.Stripped:
		o.NoDebug, o.Strip = true, true
		return whole()
	case ghc.DebugFile:
		return withDebugFile(t, whole())
	case ghc.MiniDebug:
		return withMiniDebug(t, whole())
	}
	t.Fatalf("no test builds programs %s", form)
	return ""
}

// buildWay gives the flags for a way of the run-time system.
func buildWay(t *testing.T, way ghc.Way) testprog.Options {
	t.Helper()
	o := testprog.Options{Threaded: way.Threaded(), Prof: way.Profiled()}
	if way.Debug() {
		o.Flags = append(o.Flags, "-debug")
	}
	if way.Has("l") {
		o.Flags = append(o.Flags, "-eventlog")
	}
	return o
}

// Every kind of program that ghc.Programs says this test profiles: ccagent doctor knows that it was run, nearly every stack of Haskell code
// is walked to its root, and bytes and collections are those that the run-time system counts; where nothing says where its code is,
// it is said that they are not available. Debian's shared libraries have no symbol table either.
func TestProgramsOfTheTable(t *testing.T) {
	testprog.NeedRoot(t)
	_, own := testprog.GHC(t, "")
	for _, p := range ghc.Programs {
		if p.Test != ghc.TestPrograms {
			continue
		}
		for _, way := range p.Ways {
			t.Run(fmt.Sprintf("%s %s %s %s", p.Release, p.Arch, p.Form, way), func(t *testing.T) {
				o := buildWay(t, way)
				if o.Release = p.Release; p.Release == own {
					o.Release = ""
				}
				profileBuild(t, buildForm(t, "maps", p.Form, o), p, way)
			})
		}
	}
}

func isStatic(t *testing.T, exe string) bool {
	t.Helper()
	f, err := os.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b, err := binary.Identify(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	return b.Static
}

func profileBuild(t *testing.T, exe string, p ghc.Tested, way ghc.Way) {
	t.Helper()
	form := p.Form
	if form == ghc.StaticMusl || form == ghc.Sections { // not to be told from the file
		if form = ghc.Linked; isStatic(t, exe) {
			form = ghc.Static
		}
	}
	r := run(t, command(t, ccagent, "doctor", exe))
	wantLine(t, strings.Join(strings.Fields(r.stdout), " "), fmt.Sprintf("a run-time system as this one was run in tests (%s, %s, %s)", p.Release, p.Arch, form))

	compileCalls(t, exe, "20", "1")
	log, r := record(t, []string{"-e", "cpu-clock,alloc,gc", "-F", "1999", "--max-overhead", "0"}, exe, "20000", "20", "+RTS", "-s")
	l := readLog(t, log)
	l.wantWhole(t)
	l.wantRooted(t)

	hasSymbols := form != ghc.Stripped && form != ghc.Shared && form != ghc.SharedPIE
	if missing := strings.Contains(r.stderr, "ccagent: gc: not available"); missing == hasSymbols {
		t.Errorf("collections are missing: %v", missing)
	}
	if form == ghc.Stripped {
		wantLine(t, r.stderr, "ccagent: alloc: not available")
		return
	}
	want, sampled := counted(t, "maps", r.stderr), 0.0
	for _, s := range l.allocations {
		sampled += float64(s.Weight)
	}
	if apart := sampled/want - 1; math.Abs(apart) > 0.01 {
		t.Errorf("%.0f bytes were sampled, the RTS counted %.0f: %+.3f %%", sampled, want, 100*apart)
	}
	if !hasSymbols {
		return
	}
	total := 0
	for _, m := range regexp.MustCompile(`Gen +\d+ +(\d+) colls`).FindAllStringSubmatch(r.stderr, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	if got := len(readStory(t, log).collections); got != total {
		t.Errorf("%d collections, the RTS counted %d", got, total)
	}
}
