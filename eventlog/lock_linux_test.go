package eventlog

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A second writer gets ErrBeingWritten, readers see that the log is being written, and
// closing the writer's file releases the lock.
func TestTwoWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.eventlog")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := open(), open()
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := Lock(first); err != nil || BeingWritten(first) {
		t.Fatalf("the first writer: %v", err)
	}
	if err := Lock(second); !errors.Is(err, ErrBeingWritten) {
		t.Errorf("the second writer: %v", err)
	}
	if !BeingWritten(reader) || !BeingWritten(second) {
		t.Error("nobody sees the writer")
	}
	reader.Close() // another's file: the lock stays
	if !BeingWritten(second) {
		t.Error("the lock has gone with a reader")
	}
	first.Close()
	if BeingWritten(second) || Lock(second) != nil {
		t.Error("the lock outlives its writer")
	}
}
