package process

import (
	"os"
	"path/filepath"
	"testing"

	"ccagent/agent/procfs"
)

// A program that starts maps its libraries at once; one that maps without end is followed in few of them.
func TestMappingsThatAreFollowed(t *testing.T) {
	const second = 1e9
	im := NewImage(1, 1)
	followed := func(from, n uint64) (count int) {
		for i := range n {
			if im.mayMap(from + i) {
				count++
			}
		}
		return count
	}
	if n := followed(5*second, 1_000_000); n != mappingsAtOnce {
		t.Errorf("%d of a million at once are followed, want %d", n, mappingsAtOnce)
	}
	if n := followed(15*second, 1_000_000); n != 10*mappingsPerSecond {
		t.Errorf("ten seconds later %d of as many are followed, want %d", n, 10*mappingsPerSecond)
	}
	if n := followed(15*second, 1_000_000); n != 0 {
		t.Errorf("at the same time once more %d are followed", n)
	}
}

// Who maps files without end has no more than half of those that are held, and the table of them has an end.
func TestFilesOfOneUserLeaveOthersTheirs(t *testing.T) {
	ms := newModules()
	t.Cleanup(func() { ms.Close() })
	pid := uint32(os.Getpid())
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(maxFiles + 1000) {
		mod, isNew := ms.of(pid, procfs.Mapping{Inode: 1 << 40 << (i % 2), Start: i, Major: uint32(i), Path: file})
		if isNew != (i < maxFiles) {
			t.Fatalf("file %d: new %v", i, isNew)
		}
		if i >= maxFiles && mod != ms.others {
			t.Fatalf("file %d is told apart", i)
		}
	}
	if own, held := ms.held.Taken(uint32(os.Geteuid())); len(ms.byID) != maxFiles || own != maxModules/2 || held != own {
		t.Errorf("%d files are known, %d of them held, %d for this user", len(ms.byID), held, own)
	}
}
