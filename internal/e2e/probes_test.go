package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// patched counts the bytes of a process's code that differ from the file: a probe is a
// breakpoint instruction.
func patched(t *testing.T, pid int, exe string) int {
	t.Helper()
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	file, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	n, seen := 0, false
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var start, end, offset uint64
		var perms string
		if !strings.HasSuffix(lines.Text(), exe) {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s %x", &start, &end, &perms, &offset); err != nil || !strings.Contains(perms, "x") {
			continue
		}
		seen = true
		code := make([]byte, min(end-start, uint64(len(file))-offset))
		if _, err := mem.ReadAt(code, int64(start)); err != nil {
			t.Fatal(err)
		}
		for i, b := range code {
			if b != file[offset+uint64(i)] {
				n++
			}
		}
	}
	if !seen {
		t.Fatalf("process %d has no code of %s", pid, exe)
	}
	return n
}

// kernelSays begins to read the kernel's log. The function that it returns has what was said since; nothing where nobody may read it.
func kernelSays(t *testing.T) func() string {
	t.Helper()
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Logf("the kernel's log cannot be read: %v", err)
		return func() string { return "" }
	}
	t.Cleanup(func() { unix.Close(fd) })
	if _, err := unix.Seek(fd, 0, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	record := make([]byte, 8192)
	return func() string {
		for {
			n, err := unix.Read(fd, record)
			if errors.Is(err, unix.EPIPE) { // some were overwritten before they were read
				continue
			}
			if err != nil {
				return said.String()
			}
			said.Write(record[:n])
		}
	}
}

// When the agent is killed its probes are removed, the program continues, and it can be
// profiled again.
func TestProbesGoWithTheAgent(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "maps", testprog.Options{})
	target := command(t, exe, "20000", "1000000")
	begin(t, target)
	pid := target.Process.Pid
	if n := patched(t, pid, exe); n != 0 {
		t.Fatalf("%d bytes of the code differ from the file before anything was probed", n)
	}

	first := command(t, ccagent, "attach", "-e", "cpu-clock,alloc", "-o", filepath.Join(t.TempDir(), "first.eventlog"), pidOf(target))
	wait := background(t, first)
	eventually(t, "a probe is in place", func() bool { return patched(t, pid, exe) > 0 })
	said := kernelSays(t)
	first.Process.Kill()
	if r := wait(); r.status != 128+9 {
		t.Fatalf("the killed agent ended with status %d\n%s", r.status, r.stderr)
	}
	// What the kernel fails to take out of the code at an agent's death, and says so, goes when the place is probed again (docs/security.md).
	eventually(t, "the probes are gone", func() bool {
		return patched(t, pid, exe) == 0 || strings.Contains(said(), "failed to unregister, leaking uprobe")
	})

	log := filepath.Join(t.TempDir(), "second.eventlog")
	second := command(t, ccagent, "attach", "-e", "cpu-clock,alloc", "-o", log, pidOf(target))
	wait = background(t, second)
	for event, name := range []string{"cpu-clock", "alloc"} {
		eventually(t, "the second capture has samples of "+name, func() bool {
			return has(log, func(e eventlog.Event) bool {
				s, ok := e.(*eventlog.Sample)
				return ok && s.Event == uint32(event)
			})
		})
	}
	if err := second.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if r := wait(); r.status != 0 {
		t.Fatalf("the second agent ended with status %d\n%s", r.status, r.stderr)
	}
	if n := patched(t, pid, exe); n != 0 {
		t.Errorf("%d bytes of the code still differ from the file after the capture", n)
	}
}
