package pagecache

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// cached is how many pages of a file the kernel has in memory.
func cached(t *testing.T, path string) (n int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	text, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(text)
	pages := make([]byte, (len(text)+os.Getpagesize()-1)/os.Getpagesize())
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)), uintptr(unsafe.Pointer(&pages[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, p := range pages {
		n += int(p & 1)
	}
	return n
}

// onDisk is a file that is not in memory alone, with what is in it.
func onDisk(t *testing.T) (f *os.File, text []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &st); err != nil {
		t.Fatal(err)
	}
	if st.Type == unix.TMPFS_MAGIC {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "a folder for temporary files that is on a disk"})
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	text = bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	if _, err := f.Write(text); err != nil {
		t.Fatal(err)
	}
	if cached(t, path) == 0 {
		t.Fatal("what was just written is not in memory")
	}
	return f, text
}

// expectGone expects that a file is not in memory, and can be read all the same.
func expectGone(t *testing.T, path string, text []byte) {
	t.Helper()
	if n := cached(t, path); n != 0 {
		t.Errorf("%d pages are still in memory", n)
	}
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, text) {
		t.Errorf("it cannot be read any more: %v", err)
	}
}

func TestFlush(t *testing.T) {
	f, text := onDisk(t)
	if err := Flush(f); err != nil {
		t.Fatal(err)
	}
	expectGone(t, f.Name(), text)
}

func TestDrop(t *testing.T) {
	f, text := onDisk(t)
	Begin(f)
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := Drop([]string{filepath.Join(t.TempDir(), "gone"), f.Name()}); err != nil {
		t.Fatal(err)
	}
	expectGone(t, f.Name(), text)
}
