package perf

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"ccagent/internal/testprog"

	"golang.org/x/sys/unix"
)

func monotonic(t *testing.T) uint64 {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		t.Fatal(err)
	}
	return uint64(ts.Nano())
}

// Mappings are reported with name and time for names of every length: the kernel pads names
// to 8 bytes.
func TestSideBandReportsMappings(t *testing.T) {
	testprog.NeedRoot(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	var cpus []int
	for cpu := range 1024 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	s, err := OpenSideBand(cpus)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	dir := t.TempDir()
	before := monotonic(t)
	var want []string
	for n := range 8 {
		name := filepath.Join(dir, "m"+strings.Repeat("x", n))
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Truncate(4096); err != nil {
			t.Fatal(err)
		}
		m, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Munmap(m)
		want = append(want, name)
	}
	after := monotonic(t)

	changes, err := s.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range changes {
		m, ok := c.(*Mmap)
		if !ok || filepath.Dir(m.Filename) != dir {
			continue
		}
		seen[m.Filename] = true
		if m.Time < before || m.Time > after {
			t.Errorf("%s: time %d, want within %d and %d", m.Filename, m.Time, before, after)
		}
		if m.PID != uint32(os.Getpid()) || m.Length != 4096 {
			t.Errorf("%s: pid %d, length %d", m.Filename, m.PID, m.Length)
		}
	}
	for _, name := range want {
		if !seen[name] {
			t.Errorf("the mapping of %s was not reported", name)
		}
	}
	if s.Lost != 0 {
		t.Errorf("%d records lost", s.Lost)
	}
}
