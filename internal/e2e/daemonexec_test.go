package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// asked is a program that does what lines on its standard input ask for, and answers each with a line.
type asked struct {
	t    *testing.T
	pid  int
	in   io.WriteCloser
	says *bufio.Scanner
}

// startAsked starts one; it ends with the test.
func startAsked(t *testing.T, exe string, args ...string) *asked {
	t.Helper()
	cmd := exec.Command(exe, args...)
	cmd.Dir = "/"
	in, out := testprog.Start(t, cmd)
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &asked{t, cmd.Process.Pid, in, bufio.NewScanner(out)}
}

// send writes a request to the program, and does not wait for the answer.
func (p *asked) send(line ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, line...); err != nil {
		p.t.Fatal(err)
	}
}

// ask asks for something, and gives the answer when it is through.
func (p *asked) ask(line ...any) string {
	p.t.Helper()
	p.send(line...)
	if !p.says.Scan() {
		p.t.Fatal("the program has ended")
	}
	return p.says.Text()
}

// modules are the names of the files whose code pieces have samples of.
func modules(t *testing.T, pieces []string) (names []string) {
	t.Helper()
	for _, path := range pieces {
		for _, m := range readLog(t, path).modules {
			if name := filepath.Base(m); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// A shell that is no Haskell program executes one, that executes another in the middle of its work, and
// each is sampled as what it is, in pieces of its own, with the process id that stays. What a Haskell program forks
// and what at once executes something else is not recorded, however much that is.
func TestDaemonFollowsExecs(t *testing.T) {
	testprog.NeedRoot(t)
	first, second := testprog.Build(t, "execs", testprog.Options{}), testprog.Build(t, "spin31", testprog.Options{Release: "9.10.3"})
	h := newHost(t)
	h.configure("  - {executable: execs, profile: true}\n  - {executable: spin31, profile: true}\n  - {profile: false}\n")
	h.start()
	p := startAsked(t, "/bin/sh", "-c", `read line; exec "$0"`, first)
	if s := h.ps(0)[p.pid]; s.State != "" {
		t.Errorf("ps has a shell: %+v", s)
	}
	p.send("go on")
	p.ask("spin", 300)
	eventually(t, "the first program is sampled", func() bool {
		s := h.ps(0)[p.pid]
		return s.Service == "execs" && s.Samples > 0 && s.Program == first
	})
	if r := run(t, command(t, ccagent, "boost", fmt.Sprint(p.pid), "--for", "1h", "--socket", h.socket)); r.status != 0 {
		t.Errorf("boost: %s", r.stderr)
	}

	before := h.listed("execs", "true")
	p.ask("fork", 500, "/bin/true")
	// One that has just ended may still be listed.
	eventually(t, "no more processes are listed after 500 have come and gone than before", func() bool { return h.listed("execs", "true") <= before })
	p.send("exec", second, forever)
	eventually(t, "the second program is sampled", func() bool {
		s := h.ps(0)[p.pid]
		return s.Service == "spin31" && s.Samples > 0 && s.GHC == "9.10.3"
	})
	if b := h.ps(0)[p.pid].Boost; b != nil {
		t.Errorf("the boost outlives its program: %+v", b)
	}
	of := func(service string) (pieces []string) {
		for _, path := range h.closed(p.pid, 1<<10) {
			if filepath.Base(filepath.Dir(path)) == service {
				pieces = append(pieces, path)
			}
		}
		return pieces
	}
	eventually(t, "both programs have closed pieces", func() bool { return len(of("execs")) > 0 && len(of("spin31")) > 0 })
	for own, other := range map[string]string{"execs": "spin31", "spin31": "execs"} {
		names := modules(t, of(own))
		if !slices.Contains(names, own) || slices.Contains(names, other) {
			t.Errorf("the pieces of %s have code of %v", own, names)
		}
	}
	if !slices.ContainsFunc(of("execs"), func(piece string) bool { return shows(t, piece, "Main.spin") }) {
		t.Error("no piece of the first program has its Main.spin")
	}
	all, err := filepath.Glob(filepath.Join(h.state, "[^.]*")) // without folders that are the daemon's own
	if err != nil || len(all) != 2 {
		t.Errorf("there are pieces of %v, %v", all, err)
	}
	if s := h.status(); s.Lost != 0 || s.Unwritten != 0 || s.Failed != 0 {
		t.Errorf("the status is %+v", s)
	}
	h.daemon.Process.Signal(unix.SIGTERM)
	if r := h.ended(); r.status != 0 || strings.Contains(r.stderr, "ended before") {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
}

// The terms of a process change while it is sampled, as rules do: probes are removed and put in again, a piece ends and
// another begins, and all of its CPU time has weights, none twice.
func TestDaemonChangesTerms(t *testing.T) {
	testprog.NeedRoot(t)
	p := startPhases(t)
	h := newHost(t)
	h.more = "  process-overhead: 0\n"
	rule := func(more string) {
		h.configure("  - {executable: phases, profile: true" + more + "}\n  - {profile: false}\n")
	}
	rule("")
	h.start()
	has := func(events ...string) {
		t.Helper()
		eventually(t, fmt.Sprintf("the process has %v", events), func() bool { return slices.Equal(h.ps(0)[p.pid].Events, events) })
	}
	reload := func(more string) {
		t.Helper()
		rule(more)
		if r := run(t, command(t, ccagent, "reload", "--socket", h.socket)); r.status != 0 {
			t.Fatalf("reload: %s", r.stderr)
		}
	}
	has("cpu-clock", "alloc", "gc")
	p.run("first", 600)
	reload(", without: [alloc, gc]")
	has("cpu-clock")
	p.run("second", 600)
	reload(", overhead: 0.5")
	has("cpu-clock", "alloc", "gc")
	p.run("first", 600)
	p.checkShares(t, h)
}
