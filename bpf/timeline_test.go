package bpf

import (
	"debug/elf"
	"errors"
	"os"
	"reflect"
	"runtime"
	"testing"
	"time"

	"ccagent/internal/testprog"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

var probed int

//go:noinline
func probeHere() { probed++ }

// fileOffset returns a function's offset in this program's file.
func fileOffset(t *testing.T, function func()) uint64 {
	t.Helper()
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Type != elf.ET_EXEC {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "a test program at its own addresses"})
	}
	addr := uint64(reflect.ValueOf(function).Pointer())
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr < p.Vaddr+p.Filesz {
			return addr - p.Vaddr + p.Off
		}
	}
	t.Fatalf("no segment holds %#x", addr)
	return 0
}

// The RTS probes wake user space when a group has reached its limit of hits, not before, and
// again only when the next limit is reached.
func TestRTSProbesReportTheirLimit(t *testing.T) {
	testprog.NeedRoot(t)
	if runtime.GOARCH != "amd64" {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "x86-64"})
	}
	offset := fileOffset(t, probeHere)
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Load(Config{MaxFrames: 16, CPUs: cpus, RingBytes: 1 << 16, UnwindRows: 1 << 10})
	if errors.Is(err, unix.EPERM) {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "permission to load BPF programs"})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const slot = 3
	program, err := s.LoadRTSProgram(false, slot+1)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	spent, err := ringbuf.NewReader(program.Spent())
	if err != nil {
		t.Fatal(err)
	}
	defer spent.Close()
	exe, err := link.OpenExecutable("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	probe, err := exe.Uprobe("", program.Program(), &link.UprobeOptions{Address: offset, PID: os.Getpid(), Cookie: RTSCookie(RTSRun, false, slot)})
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()

	calls := 0
	hit := func(n int) {
		for range n {
			probeHere()
		}
		calls += n
	}
	silent := func(when string) {
		t.Helper()
		spent.SetDeadline(time.Unix(1, 0))
		if _, err := spent.Read(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v", when, err)
		}
	}
	const limit = 1000
	late := 32 * cpus // hits that all CPUs together may not have added yet
	for round := range 3 {
		if err := program.SetLimit(slot, int(RTSGroupThreads), uint64(calls+limit)); err != nil {
			t.Fatal(err)
		}
		hit(limit - 1)
		silent("reported before the limit")
		hit(1 + late)
		spent.SetDeadline(time.Now().Add(time.Minute))
		record, err := spent.Read()
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if got, ok := RTSSlotOf(record.RawSample); !ok || got != slot {
			t.Errorf("reported slot %d", got)
		}
		for spent.SetDeadline(time.Unix(1, 0)); err == nil; { // it is reported again until the limit is raised
			_, err = spent.Read()
		}
	}
	counts, err := program.Counts(slot, int(RTSGroupThreads))
	if err != nil || counts.Hits != uint64(calls) {
		t.Errorf("%d hits of %d calls: %v", counts.Hits, calls, err)
	}
	if gc, err := program.Counts(slot, int(RTSGroupGC)); err != nil || gc.Hits != 0 {
		t.Errorf("%d hits of the other group: %v", gc.Hits, err)
	}
	if other, err := program.Counts(0, int(RTSGroupThreads)); err != nil || other.Hits != 0 {
		t.Errorf("%d hits of another process: %v", other.Hits, err)
	}
	if err := program.Clear(slot); err != nil {
		t.Fatal(err)
	}
	if counts, err := program.Counts(slot, int(RTSGroupThreads)); err != nil || counts.Hits != 0 {
		t.Errorf("%d hits after the counts were cleared: %v", counts.Hits, err)
	}
}
