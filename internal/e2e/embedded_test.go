package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// Haskell in a shared library that a program in C or in Python loads while it runs is profiled as any other,
// from the start on and by attaching, and is listed by ccagent ps.
func TestHaskellInALibrary(t *testing.T) {
	testprog.NeedRoot(t)
	dir, root, version, lib, host := buildEmbedded(t)
	for language, host := range map[string][]string{"C": {host}, "Python": {testprog.NeedTool(t, "python3", "python3"), filepath.Join(root, "host.py")}} {
		t.Run(language, func(t *testing.T) { profileHost(t, dir, version, append(host, lib)) })
		t.Run(language+" allocates", func(t *testing.T) { allocateInLibrary(t, append(host, lib)) })
	}
}

// buildEmbedded builds a shared library of Haskell, and a program in C that loads one; root is where they are from.
func buildEmbedded(t *testing.T) (dir, root, version, lib, host string) {
	t.Helper()
	gcc := testprog.NeedTool(t, "gcc", "gcc")
	var ghc string
	ghc, version = testprog.GHC(t, "")
	dir = sharedDir(t, 0o755)
	lib, host = filepath.Join(dir, "libembedded.so"), filepath.Join(dir, "host")
	var err error
	root, err = filepath.Abs("../../testdata/programs/embedded")
	if err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{
		{ghc, "-v0", "-O2", "-g3", "-dynamic", "-fPIC", "-shared", "-outputdir", filepath.Join(dir, "obj"), "-o", lib, "Embedded.hs", "-lHSrts-ghc" + version},
		{gcc, "-o", host, "host.c", "-ldl"},
	} {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		}
	}
	return dir, root, version, lib, host
}

// A program in C that loads Haskell after the daemon has seen it start is sampled as any other.
func TestDaemonFindsLibraries(t *testing.T) {
	testprog.NeedRoot(t)
	_, _, version, lib, program := buildEmbedded(t)
	h := newHost(t)
	h.configure("  - {executable: host, profile: true}\n  - {profile: false}\n")
	h.start()
	cmd := exec.Command(program, lib, "1000000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	eventually(t, "the program is sampled", func() bool {
		s := h.ps(0)[cmd.Process.Pid]
		return s.State == "sampled" && s.Samples > 0 && s.GHC == version
	})
}

// allocateInLibrary has the library allocate: the bytes are those that its run-time system counts. Debian's shared run-time system has no symbol
// table, so that its collections are seen by samples alone; it is said that there is no timeline of them.
func allocateInLibrary(t *testing.T, host []string) {
	t.Helper()
	log, r := record(t, []string{"-e", "cpu-clock,alloc,gc", "--max-overhead", "0"}, host[0], append(host[1:], "30", "churn")...)
	wantLine(t, r.stderr, "ccagent: gc: not available")
	m := regexp.MustCompile(`allocated (\d+)`).FindStringSubmatch(r.stdout)
	if m == nil {
		t.Fatalf("it said %q", r.stdout)
	}
	want, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	sampled := 0.0
	for _, s := range readLog(t, log).allocations {
		sampled += float64(s.Weight)
	}
	// Its counter is of when it was asked, ours of the process's end.
	if apart := sampled/want - 1; math.Abs(apart) > 0.01 {
		t.Errorf("%.0f bytes were sampled, the RTS counted %.0f: %+.3f %%", sampled, want, 100*apart)
	}
	if shares := allocShares(t, log); shares["Embedded.list"] < 0.02 {
		t.Errorf("the list's part of what was allocated: %v", shares)
	}
	gc := false
	for _, row := range hotOf(t, log).Rows {
		gc = gc || row.Element == "(GC)"
	}
	if !gc {
		t.Errorf("no sample is in the collector: %+v", hotOf(t, log).Rows)
	}
}

// A program in C into which Haskell is linked, and that starts the run-time system itself, has the timeline that the run-time system writes.
func TestHaskellLinkedIntoC(t *testing.T) {
	testprog.NeedRoot(t)
	ghc, _ := testprog.GHC(t, "")
	dir := sharedDir(t, 0o755)
	exe, reference := filepath.Join(dir, "linked"), filepath.Join(dir, "rts.eventlog")
	build := exec.Command(ghc, "-v0", "-O2", "-g3", "-no-hs-main", "-threaded", "-eventlog", "-outputdir", filepath.Join(dir, "obj"), "-o", exe, "linked.c", "Embedded.hs")
	build.Dir = "../../testdata/programs/embedded"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("GHCRTS", "-l -ol"+reference)
	log, r := record(t, []string{"-e", "cpu-clock,alloc,gc,threads", "--max-overhead", "0"}, exe, "10")
	if !strings.HasPrefix(r.stdout, "started") {
		t.Fatalf("it said %q", r.stdout)
	}
	ours, theirs := readStory(t, log), readStory(t, reference)
	if fmt.Sprint(ours.collections) != fmt.Sprint(theirs.collections) || len(ours.collections) == 0 || !maps.Equal(ours.gcStarts, theirs.gcStarts) {
		t.Errorf("%d collections, the RTS wrote %d; their figures differ", len(ours.collections), len(theirs.collections))
	}
	comparePauses(t, log, reference)
	// A run at the process's end may be missing.
	if apart := ours.runs - theirs.runs; apart < -2 || apart > 2 || ours.runs < 10 {
		t.Errorf("%d runs of threads, the RTS wrote %d", ours.runs, theirs.runs)
	}
}

// profileHost profiles a program that loads the library, given as its last argument but for the rounds that it works.
func profileHost(t *testing.T, dir, version string, host []string) {
	heavy := func(how, log string) {
		t.Helper()
		h, all := hotOf(t, log), 0
		for _, row := range h.Rows {
			all += row.Samples
		}
		wantShareAbove(t, how+": Embedded.heavy", h.element(t, "Embedded.heavy").Samples, all, 0.5)
	}
	log, _ := record(t, []string{"-e", "cpu-clock", "-F", "997"}, host[0], append(host[1:], "60")...)
	heavy("recorded", log)

	program := exec.Command(host[0], append(host[1:], "1000000")...)
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	defer program.Wait()
	defer program.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); strings.TrimSpace(line) != "started" {
		t.Fatalf("it said %q, %v", line, err)
	}
	var listed struct {
		Processes []struct {
			PID      int
			GHC, Way string
		}
	}
	ps := run(t, command(t, ccagent, "ps", "--format", "json", "--socket", filepath.Join(dir, "no-daemon")))
	if err := json.Unmarshal([]byte(ps.stdout), &listed); err != nil {
		t.Fatalf("ccagent ps: %v\n%s%s", err, ps.stdout, ps.stderr)
	}
	seen := false
	for _, p := range listed.Processes {
		seen = seen || p.PID == program.Process.Pid && p.GHC == version && p.Way != ""
	}
	if !seen {
		t.Errorf("ccagent ps does not list process %d: %+v", program.Process.Pid, listed)
	}
	log = filepath.Join(t.TempDir(), "attached.eventlog")
	attach := command(t, ccagent, "attach", "-e", "cpu-clock", "-F", "997", "-o", log, strconv.Itoa(program.Process.Pid))
	wait := background(t, attach)
	eventually(t, "100 samples are in the log", func() bool {
		n := 0
		return has(log, func(e eventlog.Event) bool {
			if isSample(e) {
				n++
			}
			return n >= 100
		})
	})
	if err := attach.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if r := wait(); r.status != 0 {
		t.Fatalf("attach: status %d\n%s", r.status, r.stderr)
	}
	heavy("attached", log)
}
