package target

import (
	"context"
	"debug/elf"
	"os"
	"os/exec"
	"testing"
	"time"

	"ccagent/agent/invoker"
	"ccagent/agent/procfs"
	"ccagent/internal/testprog"
)

// A program with a dynamic linker stands with its libraries mapped before its own first
// instruction, and runs as if nothing had happened.
func TestStandsAtItsEntry(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(sh)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	if len(needed) == 0 {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "a shell that is linked dynamically"})
	}
	p, err := Start([]string{sh, "-c", "exit 7"}, &invoker.User{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Environ: os.Environ()}, [3]*os.File{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	files := func() int {
		maps, err := procfs.Maps(p.PID)
		if err != nil {
			t.Fatal(err)
		}
		paths := map[string]bool{}
		for _, m := range maps {
			if m.Inode != 0 {
				paths[m.Path] = true
			}
		}
		return len(paths)
	}
	before := files()
	stood := false
	if err := p.Run(func() error {
		stood = true
		if n := files(); n < before+len(needed) {
			t.Errorf("%d files of code are mapped at its entry, %d before; it needs %q", n, before, needed)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !stood {
		t.Error("it did not stand at its entry")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if status, ok := p.ExitStatus(ctx); !ok || status != 7 {
		t.Errorf("it ended with %d, %v", status, ok)
	}
}
