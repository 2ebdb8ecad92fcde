package invoker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"

	"golang.org/x/sys/unix"
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
	if err := eventlog.Lock(scratch); errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.EOPNOTSUPP) {
		testprog.Skip(t, &testprog.UnsupportedError{Need: fmt.Sprintf("a file system with locks (%v)", err)})
	} else if err != nil {
		t.Fatal(err)
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
	t.Chdir(dir)
	for i, want := range []string{"prog.7.eventlog", "prog.7-2.eventlog", "prog.7-3.eventlog"} {
		f, err := CreateDefaultLog("/bin/prog", 7, who)
		if err != nil || f.Path != want {
			t.Fatalf("default log %d: %v; want %q", i, err, want)
		}
		defer f.Close()
	}
	first.Close()
	second, err := CreateLog(path, who)
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}

// Of captures that begin at once with one path, exactly one gets it: nobody's log is
// unlinked while it is written, nor is one written that has no name any more.
func TestWritersAtOnce(t *testing.T) {
	who, err := Find("")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.eventlog")
	for round := range 300 {
		if round%2 == 0 { // an older log is in the way
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		} else if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		const writers = 4
		begin := make(chan struct{})
		got := make(chan *Log, writers)
		for range writers {
			go func() {
				<-begin
				f, err := CreateLog(path, who)
				if err != nil && !errors.Is(err, eventlog.ErrBeingWritten) {
					t.Error(err)
				}
				if err != nil {
					f = nil
				}
				got <- f
			}()
		}
		close(begin)
		var winners []*Log
		for range writers {
			if f := <-got; f != nil {
				winners = append(winners, f)
			}
		}
		named := 0
		for _, f := range winners {
			mine, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			if there, err := os.Lstat(path); err == nil && os.SameFile(mine, there) {
				named++
			}
			f.Close()
		}
		if len(winners) > 1 || named != len(winners) {
			t.Fatalf("round %d: %d captures write, %d of them to a log that has its name", round, len(winners), named)
		}
	}
}
