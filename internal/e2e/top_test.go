package e2e

import (
	"maps"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// pane is a terminal that commands run in.
type pane struct {
	t      *testing.T
	socket string
}

func newPane(t *testing.T, dir string) *pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatalf("tmux: %v (scripts/test installs it)", err)
	}
	p := &pane{t, filepath.Join(t.TempDir(), "tmux")}
	t.Cleanup(func() { exec.Command("tmux", "-S", p.socket, "kill-server").Run() })
	p.tmux("-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", "-c", dir, "env", "PS1=$ ", "XDG_CONFIG_HOME="+filepath.Dir(p.socket), "sh")
	return p
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (p *pane) keys(keys ...string) { p.tmux(append([]string{"send-keys"}, keys...)...) }

// await polls until the screen shows all of the words.
func (p *pane) await(words ...string) string {
	p.t.Helper()
	deadline := time.Now().Add(limit) // only ever reached by a failure
	for {
		screen := p.tmux("capture-pane", "-p")
		missing := ""
		for _, w := range words {
			if !strings.Contains(screen, w) {
				missing = w
			}
		}
		if missing == "" {
			return screen
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the terminal never showed %q:\n%s", missing, screen)
		}
		time.Sleep(50 * time.Millisecond) // between polls
	}
}

// The screens appear while the program runs, with names; a selection stays while they grow;
// leaving ends the program.
func TestTop(t *testing.T) {
	if err := touchSources(); err != nil {
		t.Fatal(err)
	}
	exe := testprog.CopyTo(t, testprog.Build(t, "spin31", testprog.Options{}), sharedDir(t, 0o755)) // no other test runs this one
	p := newPane(t, t.TempDir())
	p.keys(ccagent+" top -- "+exe+" "+endless+"; echo status $?", "Enter")
	p.await("live spin31", "three:", "samples kept")
	p.keys("/", "three", "Enter", "f")
	p.await("live spin31", "focus Main.three")
	p.keys("3")
	p.await("live spin31", "flame graph", "call tree", "focus Main.three")
	p.keys("P")
	p.await("paused spin31")
	p.keys("P")
	p.await("live spin31")
	p.keys("q")
	p.await("status 0")
	if out, err := exec.Command("pgrep", "-f", exe+" "+endless).CombinedOutput(); err == nil {
		t.Errorf("the program runs on: %s", out)
	}
}

// A key shows what the program's threads do, with names, and the log that is kept has it.
func TestTopShowsThreads(t *testing.T) {
	s := stand(t, testprog.Options{Threaded: true, Release: "9.10.3"}, dumpsAlike...)
	dir := t.TempDir()
	log := filepath.Join(dir, "top.eventlog")
	p := newPane(t, dir)
	p.keys(ccagent+" top -o "+log+" "+strconv.Itoa(s.Process.Pid)+"; echo status $?", "Enter")
	p.await("live PID", "samples kept")
	p.keys("W")
	p.await("Haskell threads:", "Main.hs")
	p.keys("q")
	p.await("status 0")
	var d dumped
	view(t, &d, "threads", log)
	if got, want := d.said(), dumpThreads(t, s.Process.Pid).said(); !maps.Equal(got, want) {
		t.Errorf("the log has\n%v\nand the command by itself says\n%v", got, want)
	}
}

// The bands of a series of censuses are drawn while the program runs, with what grows.
func TestTopShowsHeap(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "top.eventlog")
	p := newPane(t, dir)
	exe := testprog.Build(t, "grow", testprog.Options{Threaded: true})
	p.keys(ccagent+" top -e cpu-clock,heap=100ms --max-overhead 0 -o "+log+" -- "+exe+" 500 100000000; echo status $?", "Enter")
	p.await("live grow", "samples kept")
	p.keys("5")
	p.await("heap by closure type", "growth", "Main.Session", "live grow")
	p.keys("q")
	p.await("status 0")
	var doc struct {
		Total []uint64 `json:"total_bytes"`
	}
	if view(t, &doc, "heap", log); len(doc.Total) < 2 {
		t.Errorf("the log has %d censuses", len(doc.Total))
	}
}

// The viewer follows the log of a capture in another process to its end.
func TestFollow(t *testing.T) {
	if err := touchSources(); err != nil {
		t.Fatal(err)
	}
	exe := testprog.Build(t, "spin31", testprog.Options{})
	dir := t.TempDir()
	log := filepath.Join(dir, "spin31.eventlog")
	agent := command(t, ccagent, "record", "--live", "-o", log, "--", exe, endless)
	wait := background(t, agent)
	p := newPane(t, dir)
	p.keys("until [ -e "+log+" ]; do sleep 0.1; done; "+ccview+" --follow "+log+"; echo status $?", "Enter")
	p.await("live spin31.eventlog", "three:")
	pid := 0 // the kernel's list may lack a child while another one ends
	eventually(t, "the program is listed", func() bool { pid = childOf(agent.Process.Pid, "spin31"); return pid != 0 })
	if err := unix.Kill(pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.await("the capture has ended; this is all of it")
	p.keys("q")
	p.await("status 0")
	if r := wait(); r.status != 128+int(unix.SIGTERM) {
		t.Errorf("record: status %d\n%s", r.status, r.stderr)
	}
	readLog(t, log).wantWhole(t)
}
