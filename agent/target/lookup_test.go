package target

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ccagent/agent/invoker"
	"ccagent/internal/testprog"
)

// Programs are looked up with the invoker's rights, so the answer does not reveal files in
// folders that the invoker may not enter.
func TestProgramsAreLookedUpAsTheInvoker(t *testing.T) {
	testprog.NeedRoot(t)
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "there"), []byte("#!/bin/sh\n"), 0o755), os.Chmod(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	who := &invoker.User{UID: 54321, GID: 54321, Environ: []string{"PATH=" + dir}}
	status := func(name string) int {
		t.Helper()
		p, err := Start([]string{name}, who, [3]*os.File{})
		var start *StartError
		if !errors.As(err, &start) {
			if err == nil {
				p.Close()
			}
			t.Fatalf("%s: %v, want a StartError", name, err)
		}
		return start.Status
	}
	if a, b := status("there"), status("missing"); a != b {
		t.Errorf("exit status %d for a program that is there, %d for one that is not", a, b)
	}
}
