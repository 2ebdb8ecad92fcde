package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
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
	gcc := testprog.NeedTool(t, "gcc", "gcc")
	ghc, version := testprog.GHC(t, "")
	dir := sharedDir(t, 0o755)
	lib, host := filepath.Join(dir, "libembedded.so"), filepath.Join(dir, "host")
	root, err := filepath.Abs("../../testdata/programs/embedded")
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
	for language, host := range map[string][]string{"C": {host}, "Python": {testprog.NeedTool(t, "python3", "python3"), filepath.Join(root, "host.py")}} {
		t.Run(language, func(t *testing.T) { profileHost(t, dir, version, append(host, lib)) })
	}
}

// profileHost profiles a program that loads the library, given as its last argument but for the rounds that it works.
func profileHost(t *testing.T, dir, version string, host []string) {
	heavy := func(how, log string) {
		t.Helper()
		for _, row := range hotOf(t, log).Rows {
			if row.Element == "Embedded.heavy" && row.Share > 0.5 {
				return
			}
		}
		t.Errorf("%s: Embedded.heavy has no large share of %+v", how, hotOf(t, log).Rows)
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
