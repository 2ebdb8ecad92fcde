package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// linked builds a program in ways in which programs are deployed, each of which has its own place for
// the run-time system's code and symbols.
var linked = map[string]func(*testing.T, string, testprog.Options) string{
	"static, split sections": func(t *testing.T, name string, o testprog.Options) string {
		o.Flags = append(o.Flags, "-optl-static", "-split-sections")
		return testprog.Build(t, name, o)
	},
	"static with musl": func(t *testing.T, name string, o testprog.Options) string { return testprog.BuildMusl(t, name, o) },
	"stripped, with a debug file": func(t *testing.T, name string, o testprog.Options) string {
		return withDebugFile(t, testprog.Build(t, name, o))
	},
}

// withDebugFile gives a copy of a program that is stripped and names its debug file, which lies beside it.
func withDebugFile(t *testing.T, whole string) string {
	t.Helper()
	objcopy, dir := testprog.NeedTool(t, "objcopy", "binutils"), sharedDir(t, 0o755)
	exe := filepath.Join(dir, filepath.Base(whole))
	debug := exe + ".debug"
	for _, argv := range [][]string{{"--only-keep-debug", whole, debug}, {"--strip-all", "--add-gnu-debuglink=" + debug, whole, exe}} {
		if out, err := exec.Command(objcopy, argv...).CombinedOutput(); err != nil {
			t.Fatalf("objcopy %q: %v\n%s", argv, err, out)
		}
	}
	return exe
}

// withMiniDebug gives a copy of a program that is stripped and has the symbols of its functions in .gnu_debugdata, as
// the programs of Fedora do: those that nm calls T, t or D and the dynamic linker's table lacks.
func withMiniDebug(t *testing.T, whole string) string {
	t.Helper()
	objcopy, xz, nm := testprog.NeedTool(t, "objcopy", "binutils"), testprog.NeedTool(t, "xz", "xz-utils"), testprog.NeedTool(t, "nm", "binutils")
	dir := sharedDir(t, 0o755)
	debug, mini, keep, exe := filepath.Join(dir, "debug"), filepath.Join(dir, "mini"), filepath.Join(dir, "keep"), filepath.Join(dir, filepath.Base(whole))
	listed := func(args ...string) map[string]bool {
		out, err := exec.Command(nm, append(args, "--format=posix", "--defined-only", whole)...).Output()
		if err != nil {
			t.Fatalf("nm: %v", err)
		}
		names := map[string]bool{}
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(line); len(f) > 1 && strings.Contains("TtD", f[1]) {
				names[f[0]] = true
			}
		}
		return names
	}
	functions, dynamic := listed(), listed("-D")
	maps.DeleteFunc(functions, func(name string, _ bool) bool { return dynamic[name] })
	names := slices.Collect(maps.Keys(functions))
	if err := os.WriteFile(keep, []byte(strings.Join(names, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{
		{objcopy, "--only-keep-debug", whole, debug},
		{objcopy, "-S", "--remove-section", ".comment", "--keep-symbols=" + keep, debug, mini}, {xz, "-1", mini},
		{objcopy, "--strip-all", "--add-section", ".gnu_debugdata=" + mini + ".xz", whole, exe},
	} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		}
	}
	return exe
}

// However a program is linked, its GCs are those that its own run-time system writes, its threads
// are those that it prints, its stacks are whole, and its source has names: when it is recorded and
// when it is attached to.
func TestHoweverLinked(t *testing.T) {
	for way, build := range linked {
		t.Run(way, func(t *testing.T) {
			testprog.NeedRoot(t)
			exe := build(t, "waits", testprog.Options{Threaded: true, Flags: []string{"-eventlog"}})
			reference := filepath.Join(t.TempDir(), "rts.eventlog")
			log, r := record(t, []string{"-e", "cpu-clock,alloc,gc,threads", "--max-overhead", "0"}, exe, "2", "+RTS", "-l", "-ol"+reference)
			if strings.Contains(r.stderr, "not available") || strings.Contains(r.stderr, "is stripped") {
				t.Errorf("something is missing:\n%s", r.stderr)
			}
			ours, theirs := readStory(t, log), readStory(t, reference)
			if fmt.Sprint(ours.collections) != fmt.Sprint(theirs.collections) || len(ours.collections) == 0 || !maps.Equal(ours.gcStarts, theirs.gcStarts) {
				t.Errorf("collections %+v, the RTS wrote %+v", ours.collections, theirs.collections)
			}
			// A run at the process's end may be missing.
			if apart := ours.runs - theirs.runs; apart < -2 || apart > 2 || ours.runs == 0 {
				t.Errorf("%d runs of threads, the RTS wrote %d", ours.runs, theirs.runs)
			}

			exe = build(t, "threads100", testprog.Options{Threaded: true})
			target := command(t, exe, "2000", "5", "1", "lines")
			out, lines := linePipe(t)
			target.Stdout = out
			begin, err := target.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			waitTarget := background(t, target)
			out.Close()
			text := ""
			for range 5 {
				text += lines.want(t, "thread") + "\n"
			}
			log = filepath.Join(t.TempDir(), "attached.eventlog")
			wait := background(t, command(t, ccagent, "attach", "--max-overhead", "0", "-F", "997", "-e", "cpu-clock,alloc,threads", "-o", log, pidOf(target)))
			eventually(t, "the capture has begun", func() bool {
				return has(log, func(e eventlog.Event) bool { _, begun := e.(*eventlog.Capture); return begun })
			})
			if _, err := begin.Write([]byte("\n\n")); err != nil {
				t.Fatal(err)
			}
			if r := wait(); r.status != 0 || strings.Contains(r.stderr, "not available") {
				t.Fatalf("ccagent attach: status %d\n%s", r.status, r.stderr)
			}
			if r := waitTarget(); r.status != 0 {
				t.Fatalf("the program ended with status %d\n%s", r.status, r.stderr)
			}
			l := readLog(t, log)
			l.wantWhole(t)
			sampled, haskell, rooted := map[uint64]bool{}, 0, 0
			for _, s := range l.samples {
				if s.Event != 0 || !inHaskell(s) {
					continue
				}
				if haskell++; s.Stop.Complete() {
					rooted++
				}
				if frames := l.frames(s); len(frames) > 0 && l.source(frames[0]) == "bottom" {
					sampled[s.TSO] = true
				}
			}
			wantShareAbove(t, "complete stacks", rooted, haskell, 0.99)
			for tso := range parseThreads(t, text) {
				if !sampled[tso] {
					t.Errorf("thread %d has no sample in Main.bottom", tso)
				}
			}
			if !has(log, func(e eventlog.Event) bool { _, ran := e.(*eventlog.RunThread); return ran }) {
				t.Error("no run of a thread was seen after attaching")
			}
		})
	}
}
