package ui

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ccagent/internal/testprog"
	"ccagent/profile/logtest"
	"ccagent/ui/internal/fixture"
)

// terminal is a tmux server of its own with one window.
type terminal struct {
	t      *testing.T
	socket string
	env    []string
}

func newTerminal(t *testing.T, w, h int) *terminal {
	t.Helper()
	testprog.NeedTool(t, "tmux", "tmux")
	dir, err := os.MkdirTemp("", "ccview") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	term := &terminal{t: t, socket: filepath.Join(dir, "s")}
	for _, e := range os.Environ() {
		if k, _, _ := strings.Cut(e, "="); k != "TMUX" && k != "NO_COLOR" && k != "TERM" {
			term.env = append(term.env, e)
		}
	}
	seen := settingsIn(dir) // the tour of a first run would take keys
	if err := os.MkdirAll(filepath.Dir(seen), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(seen, []byte(`{"seen":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	term.env = append(term.env, "TERM=xterm-256color", "XDG_CONFIG_HOME="+dir, "LC_ALL=C.UTF-8")
	term.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(w), "-y", fmt.Sprint(h), "bash", "--norc", "--noprofile")
	t.Cleanup(func() { term.tmux("kill-server") })
	return term
}

func (x *terminal) tmux(args ...string) string {
	x.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", x.socket}, args...)...)
	cmd.Env = x.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		x.t.Fatalf("tmux %v: %v\n%s", args, err, stderr.String())
	}
	return string(out)
}

func (x *terminal) keys(keys ...string) { x.tmux(append([]string{"send-keys"}, keys...)...) }

// await polls until the screen is as wanted.
func (x *terminal) await(what string, ok func(screen string) bool) string {
	x.t.Helper()
	deadline := time.Now().Add(3 * time.Minute) // only ever reached by a failure
	for {
		screen := x.tmux("capture-pane", "-p")
		if ok(screen) {
			return screen
		}
		if time.Now().After(deadline) {
			x.t.Fatalf("the terminal never showed %s:\n%s", what, screen)
		}
		time.Sleep(20 * time.Millisecond) // between polls
	}
}

func (x *terminal) awaitText(text string) string {
	x.t.Helper()
	return x.await(fmt.Sprintf("%q", text), func(s string) bool { return strings.Contains(s, text) })
}

func build(t *testing.T) (program, log string) {
	t.Helper()
	dir := t.TempDir()
	program, log = filepath.Join(dir, "ccview"), filepath.Join(dir, "nbody.eventlog")
	cmd := exec.Command("go", "build", "-o", program, "ccagent/cmd/ccview")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build ccview: %v\n%s", err, out)
	}
	if err := os.WriteFile(log, fixture.Log(t, fixture.Options{Samples: 4000}), 0o600); err != nil {
		t.Fatal(err)
	}
	return program, log
}

func TestEndToEnd(t *testing.T) {
	x := newTerminal(t, 120, 40)
	program, log := build(t)
	x.keys("echo be''fore; "+program+" "+log, "Enter")
	x.awaitText("4 000 of 4 000 samples kept")
	x.keys("/", "force", "Enter", "f")
	x.awaitText("focus Physics.force")
	x.keys("u")
	x.awaitText("4 000 of 4 000")

	x.tmux("resize-window", "-x", "80", "-y", "24")
	x.await("80 columns", func(s string) bool {
		l := strings.Split(s, "\n")
		return len(l) >= 24 && strings.HasSuffix(l[2], "┐") && len([]rune(l[2])) == 80 && strings.Contains(l[23], "quit")
	})
	x.keys("3")
	x.awaitText("call tree")
	x.keys("Escape")
	x.awaitText("hot  by share")

	x.keys("C-z")
	x.awaitText("Stopped")
	x.keys("fg; echo status $?", "Enter")
	x.awaitText("hot  by share")

	x.keys("q")
	screen := x.awaitText("status 0")
	if !strings.Contains(screen, "before") || strings.Contains(screen, "hot  by share") {
		t.Errorf("quitting did not restore the screen:\n%s", screen)
	}
	if got := strings.TrimSpace(x.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}")); got != "0 1 0" {
		t.Errorf("after quitting, alternate screen, cursor and mouse are %q, want \"0 1 0\"", got)
	}
}

func TestMouseInTerminal(t *testing.T) {
	x := newTerminal(t, 120, 40)
	program, log := build(t)
	x.keys(program+" --ascii "+log, "Enter")
	screen := x.awaitText("4 000 of 4 000 samples kept")
	row := -1
	for i, l := range strings.Split(screen, "\n") {
		if strings.Contains(l, "| force:18") {
			row = i
		}
	}
	if row < 0 {
		t.Fatalf("no row for force:\n%s", screen)
	}
	// A click as a terminal in SGR mode sends it.
	click := fmt.Sprintf("\x1b[<0;40;%dM\x1b[<0;40;%dm", row+1, row+1)
	x.tmux("send-keys", "-l", click)
	x.await("the clicked row selected", func(s string) bool {
		return strings.HasPrefix(strings.Split(s, "\n")[row], "|>")
	})
	x.keys("q")
}

// A log that is none: a line on stderr, the terminal as it was, status 1.
func TestEndToEndBadLog(t *testing.T) {
	x := newTerminal(t, 120, 40)
	program, log := build(t)
	if err := os.WriteFile(log, []byte("this is no log"), 0o600); err != nil {
		t.Fatal(err)
	}
	x.keys(program+" "+log+"; echo status $?", "Enter")
	x.awaitText("status 1")
	if got := strings.TrimSpace(x.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}")); got != "0 1" {
		t.Errorf("alternate screen and cursor are %q", got)
	}
}

// Where stdout is no terminal, or TERM=dumb, there is text and not one escape.
func TestNeverWithoutTerminal(t *testing.T) {
	program, log := build(t)
	out, err := exec.Command(program, log).Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out, []byte("Physics.step")) || bytes.Contains(out, []byte("\x1b")) {
		t.Errorf("piped output:\n%s", out)
	}
	x := newTerminal(t, 120, 40)
	x.keys("TERM=dumb "+program+" "+log+" --top 5; echo status $?", "Enter")
	if screen := x.awaitText("status 0"); strings.Contains(screen, "timeline") {
		t.Errorf("TERM=dumb started the viewer:\n%s", screen)
	}
}

// Two groups of logs on a terminal open the screen of comparisons; a log of a
// run-time system that of the heap. Both leave the terminal as it was.
func TestEndToEndDiffAndHeap(t *testing.T) {
	x := newTerminal(t, 120, 40)
	program, log := build(t)
	dir := filepath.Dir(log)
	var sides [2][]string
	for i := range 4 {
		for side, changed := range []bool{false, true} {
			name := filepath.Join(dir, fmt.Sprintf("%d%v", i, changed))
			if err := os.WriteFile(name, logtest.Run(uint64(100*side+i), changed).End(), 0o600); err != nil {
				t.Fatal(err)
			}
			sides[side] = append(sides[side], name)
		}
	}
	x.keys(program+" diff "+strings.Join(sides[0], ",")+" "+strings.Join(sides[1], ",")+"; echo status $?", "Enter")
	x.awaitText("only significant")
	x.awaitText("Work.heavy")
	x.keys("2")
	x.awaitText("causes of")
	x.keys("6", "q")
	x.awaitText("status 0")

	x.keys("clear; "+program+" internal/fixture/testdata/bands-hT.eventlog; echo ended $?", "Enter")
	x.awaitText("heap by closure type")
	x.awaitText("gc pauses")
	x.keys("q")
	x.awaitText("ended 0")
	if got := strings.TrimSpace(x.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}")); got != "0 1" {
		t.Errorf("alternate screen and cursor are %q", got)
	}
}

// Two logs of heaps are compared band by band on a terminal too, at the level that is asked for.
func TestHeapsOnATerminal(t *testing.T) {
	x := newTerminal(t, 120, 40)
	program, _ := build(t)
	dir := t.TempDir()
	for name, log := range map[string]*logtest.Log{"a.eventlog": logtest.DividedUntil(1), "b.eventlog": logtest.Divided()} {
		if err := os.WriteFile(filepath.Join(dir, name), log.End(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x.keys("cd "+dir+"; "+program+" diff --heap a.eventlog b.eventlog", "Enter")
	x.awaitText("+3.12 KiB          +80  thunk Main.main  Main.hs:3:8")
	x.keys("clear; "+program+" diff --level kind a.eventlog b.eventlog", "Enter")
	x.awaitText("q quit")
	x.keys("5")
	x.awaitText("by kind: +3.12 KiB")
	x.keys("j", "c")
	x.awaitText("by source: +3.12 KiB")
	x.keys("j", "k")
	screen := x.awaitText("c group")
	if !strings.Contains(screen, "[changes]") || !strings.Contains(screen, "thunk Main.main  Main.hs:3:8") {
		t.Errorf("the bands are not compared:\n%s", screen)
	}
	x.keys("q")
}
