package invoker

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ccagent/eventlog"
)

// A log that is being written is not taken from its writer; a finished one is
// replaced.
func TestTwoWriters(t *testing.T) {
	who, err := Find("")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	scratch, err := os.Create(filepath.Join(dir, "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	defer scratch.Close()
	if err := eventlog.Lock(scratch); err != nil {
		t.Skipf("unsupported: the file system has no locks: %v", err)
	}
	path := filepath.Join(dir, "x.eventlog")
	first, err := CreateLog(path, who)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := CreateLog(path, who); !errors.Is(err, eventlog.ErrBeingWritten) {
		f.Close()
		t.Errorf("a second writer: %v", err)
	}
	if a, err := os.Stat(path); err != nil {
		t.Error(err)
	} else if b, err := first.Stat(); err != nil || !os.SameFile(a, b) {
		t.Error("the first writer's log is gone", err)
	}
	first.Close()
	second, err := CreateLog(path, who)
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}
