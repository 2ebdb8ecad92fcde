package hold

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/procfs"
	"ccagent/internal/testprog"
)

// procedure gives the place in a program's file of a procedure.
func procedure(t *testing.T, exe, name string) uint64 {
	t.Helper()
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		for _, p := range f.Progs {
			if s.Name == name && p.Type == elf.PT_LOAD && s.Value >= p.Vaddr && s.Value < p.Vaddr+p.Filesz {
				return s.Value - p.Vaddr + p.Off
			}
		}
	}
	t.Fatalf("%s has no %s", exe, name)
	return 0
}

func state(t *testing.T, pid, tid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "State:\t")
	return rest[:1]
}

// A thread of a running program stands at the point, again and again, and is let go of;
// meanwhile nobody else can hold it, and who tries is told who does.
func TestRunningIsHeldAndLetGo(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "maps", testprog.Options{Threaded: true, NoDebug: true})
	cmd := exec.CommandContext(t.Context(), exe, "20000", "1000000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	pid := cmd.Process.Pid
	path, offset := fmt.Sprintf("/proc/%d/exe", pid), procedure(t, exe, "GarbageCollect")
	for range 3 {
		begun := time.Now()
		stood := false
		err := Running(t.Context(), pid, path, offset, func(tid int) error {
			stood = true
			if s := state(t, pid, tid); s != "t" {
				t.Errorf("the thread is in state %q, not stopped by its tracer", s)
			}
			var traced *TracedError
			err := Running(t.Context(), pid, path, offset, func(int) error { return nil })
			if !errors.As(err, &traced) || traced.Tracer != os.Getpid() {
				t.Errorf("a second one gets %v", err)
			}
			return nil
		})
		if err != nil || !stood {
			t.Fatalf("it stood: %v; %v", stood, err)
		}
		t.Logf("held after %v", time.Since(begun))
		if s, err := procfs.ReadStatus(pid); err != nil || s.Tracer != 0 {
			t.Fatalf("it is traced by %d; %v", s.Tracer, err)
		}
	}
	// A place that no thread comes to is given up.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Running(ctx, pid, path, procedure(t, exe, "shutdownHaskellAndExit"), func(int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if err := cmd.Process.Signal(unix.Signal(0)); err != nil {
		t.Error(err)
	}
}
