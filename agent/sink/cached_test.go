package sink

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

// Files that are on the disk are not kept in memory, and can be read all the same.
func TestUncache(t *testing.T) {
	path := filepath.Join(t.TempDir(), "piece")
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &st); err != nil {
		t.Fatal(err)
	}
	if st.Type == unix.TMPFS_MAGIC {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "a folder for temporary files that is on a disk"})
	}
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(text); err != nil {
		t.Fatal(err)
	}
	writeBack(f)
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if n := cached(t, path); n == 0 {
		t.Fatal("what was just written is not in memory")
	}
	if err := Uncache([]string{filepath.Join(t.TempDir(), "gone"), path}); err != nil {
		t.Fatal(err)
	}
	if n := cached(t, path); n != 0 {
		t.Errorf("%d pages are still in memory", n)
	}
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, text) {
		t.Errorf("it cannot be read any more: %v", err)
	}
}
