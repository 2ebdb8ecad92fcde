package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// unitMemory is MemoryMax of the service, in bytes.
func unitMemory(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("../../deploy/ccagent.service")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^MemoryMax=(\d+)M$`).FindSubmatch(text)
	if m == nil {
		t.Fatal("the unit has no MemoryMax in MB")
	}
	mb, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return mb << 20
}

// startAs starts a program with a process id that is free. The kernel gives the id after the last one, but
// another process of the machine may take it first.
func startAs(t *testing.T, pid int, exe string, args ...string) *exec.Cmd {
	t.Helper()
	const next = "/proc/sys/kernel/ns_last_pid"
	var cmd *exec.Cmd
	eventually(t, fmt.Sprintf("a process has id %d", pid), func() bool {
		if err := os.WriteFile(next, []byte(strconv.Itoa(pid-1)), 0); err != nil {
			testprog.Skip(t, &testprog.UnsupportedError{Need: fmt.Sprintf("a choice of process ids (%v)", err)})
		}
		cmd = exec.Command(exe, args...)
		cmd.Dir = "/"
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if cmd.Process.Pid == pid {
			return true
		}
		cmd.Process.Kill()
		cmd.Wait()
		return false
	})
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

// contents are the program, and whether the log is whole and named, of a piece.
func contents(t *testing.T, path string) (program string, whole bool) {
	t.Helper()
	r := run(t, command(t, ccview, "info", path, "--format", "json"))
	var info struct {
		Program              struct{ Path string }
		Complete, Symbolised bool
	}
	if r.status != 0 || json.Unmarshal([]byte(r.stdout), &info) != nil {
		return "", false
	}
	return info.Program.Path, info.Complete && info.Symbolised
}

// In the memory that its unit allows, the daemon goes through what happens to a host: a build is replaced
// on the disk while it runs, a container goes with its files, a thousand processes are forked that are none
// of its own, and a process id is used again by another program at once.
func TestDaemonSurvives(t *testing.T) {
	testprog.NeedRoot(t)
	spin, alloc := testprog.Build(t, "spin31", testprog.Options{}), testprog.Build(t, "alloc31", testprog.Options{})
	dir := sharedDir(t, 0o755)
	put := func(from, to string) string {
		t.Helper()
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		to = filepath.Join(dir, to)
		if err := os.WriteFile(to, text, 0o755); err != nil {
			t.Fatal(err)
		}
		return to
	}

	replaced := put(spin, "replaced-spin31")
	old := runOn(t, nil, replaced, forever)
	testprog.WaitExecuted(t, old.Process.Pid)
	if err := os.Rename(put(alloc, "new"), replaced); err != nil {
		t.Fatal(err)
	}
	fresh := runOn(t, nil, replaced, forever)

	h := newHost(t)
	h.memory = unitMemory(t)
	h.configure("  - {executable: '*spin31*', profile: true}\n  - {executable: alloc31, profile: true}\n  - {profile: false}\n")
	h.start()

	// The program is in a file system that only the container has mounted, and the container has no /proc. The shell is what it begins with.
	if err := os.Mkdir(filepath.Join(dir, "root"), 0o755); err != nil {
		t.Fatal(err)
	}
	container := runOn(t, &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Unshareflags: unix.CLONE_NEWNS}, "/bin/sh", "-c",
		`mount -t tmpfs none "$1/root" && cp "$0" "$1/root/contained-spin31" && umount -l /proc && exec "$1/root/contained-spin31" `+forever, spin, dir)

	var hot struct{ Rows []struct{ Element string } }
	for what, c := range map[string]struct {
		pid     int
		binding string
	}{"the program whose file is gone": {old.Process.Pid, "Main.three"}, "the program that replaced it": {fresh.Process.Pid, "Main.count"}, "the container": {container.Process.Pid, "Main.three"}} {
		var pieces []string
		eventually(t, what+" has a closed piece", func() bool {
			pieces = h.closed(c.pid, 1)
			return len(pieces) > 0
		})
		view(t, &hot, "hot", "--top", "0", pieces[0])
		is := func(name string) bool {
			for _, r := range hot.Rows {
				if r.Element == name {
					return true
				}
			}
			return false
		}
		if !is(c.binding) || c.binding == "Main.count" && !is("Main.run") {
			t.Errorf("%s: %s has no %s: %v", what, pieces[0], c.binding, hot.Rows)
		}
	}
	container.Process.Kill()
	container.Wait()
	eventually(t, "the last piece of the container is named", func() bool {
		pieces := h.pieces(container.Process.Pid)
		_, whole := contents(t, pieces[len(pieces)-1])
		return whole
	})

	passing := []string{"sh", "dash", "bash", "true"}
	before := h.listed(passing...)
	storm := command(t, "/bin/sh", "-c", `i=0; while [ $i -lt 1000 ]; do /bin/true & i=$((i+1)); done; wait`)
	if r := run(t, storm); r.status != 0 {
		t.Fatalf("the storm: %+v", r)
	}
	// One that has just ended may still be listed.
	eventually(t, "no more processes are listed after the storm than before", func() bool { return h.listed(passing...) <= before })

	pid := old.Process.Pid
	old.Process.Kill()
	old.Wait()
	startAs(t, pid, alloc, forever)
	eventually(t, "the process id is the other program's", func() bool {
		p := h.ps(0)[pid]
		return p.State == "sampled" && filepath.Base(p.Program) == "alloc31" && p.Samples > 0
	})
	of := func(exe string) (pieces []string) {
		for _, path := range h.pieces(pid) {
			if strings.Contains(path, "/"+filepath.Base(exe)+"/") { // the service
				pieces = append(pieces, path)
			}
		}
		return pieces
	}
	eventually(t, "the other program has a piece of its own", func() bool {
		pieces := of(alloc)
		if len(pieces) == 0 {
			return false
		}
		program, whole := contents(t, pieces[0])
		return whole && program == alloc
	})
	earlier := of(replaced)
	for _, piece := range []struct{ path, own, other string }{{of(alloc)[0], "alloc31", "spin31"}, {earlier[len(earlier)-1], "spin31", "alloc31"}} {
		own := false
		for _, module := range readLog(t, piece.path).modules {
			name := filepath.Base(module)
			own = own || strings.Contains(name, piece.own)
			if strings.Contains(name, piece.other) {
				t.Errorf("%s has code of %s, which had the process id at another time", piece.path, module)
			}
		}
		if !own {
			t.Errorf("%s has no code of its own program", piece.path)
		}
	}

	s := h.status()
	if s.Lost != 0 || s.Unwritten != 0 || s.Failed != 0 {
		t.Errorf("the status is %+v", s)
	}
	h.daemon.Process.Signal(unix.SIGTERM)
	if r := h.ended(); r.status != 0 || strings.Contains(r.stderr, "killed") {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
}
