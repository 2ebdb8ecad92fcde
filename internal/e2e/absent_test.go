package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// pageOut has the kernel take a file's pages out of a process's page tables, as it does by itself where memory is short.
func pageOut(t *testing.T, pid int, path string) {
	t.Helper()
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(process)
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uintptr
		if !strings.HasSuffix(lines.Text(), path) {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x", &from, &to); err != nil {
			t.Fatal(err)
		}
		// The address is of the other process.
		part := struct{ base, length uintptr }{from, to - from}
		if _, _, err := unix.Syscall6(unix.SYS_PROCESS_MADVISE, uintptr(process), uintptr(unsafe.Pointer(&part)), 1, unix.MADV_PAGEOUT, 0, 0); err != 0 {
			t.Fatal(err)
		}
	}
}

// Stacks are whole of a program whose code the kernel has reclaimed: the code that runs is back at once, but not the info tables of frames
// to which it has not returned since.
func TestCodeThatWasReclaimed(t *testing.T) {
	testprog.NeedRoot(t)
	dir := t.TempDir()
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	if fs.Type == unix.TMPFS_MAGIC {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "files whose pages the kernel can give up", Hint: "set TMPDIR to a folder on a disk"})
	}
	// Nobody else maps this file, and no page of it has yet to be written to the disk, which keeps it in memory.
	program := testprog.CopyTo(t, testprog.Build(t, "spin31", testprog.Options{}), dir)
	unix.Sync()
	target := runOn(t, nil, program, forever)
	log := filepath.Join(t.TempDir(), "run.eventlog")
	attach := func() (stacks struct {
		Complete, Failed int
		Reasons          map[string]int
	}) {
		if r := run(t, command(t, ccagent, "attach", "-e", "cpu-clock", "-F", "499", "--duration", "3s", "-o", log, pidOf(target))); r.status != 0 {
			t.Fatalf("status %d\n%s", r.status, r.stderr)
		}
		info := struct{ Stacks any }{&stacks}
		view(t, &info, "info", log)
		return stacks
	}
	attach() // it runs
	pageOut(t, target.Process.Pid, program)
	s := attach()
	if s.Reasons["unreadable-info-table"] == 0 {
		t.Errorf("the first samples find what was reclaimed: %+v", s)
	}
	if s.Failed > s.Complete/2 {
		t.Errorf("what was reclaimed is brought in: %+v", s)
	}
}
