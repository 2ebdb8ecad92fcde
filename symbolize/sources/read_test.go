package sources

import (
	"ccagent/symbolize/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Only text files of bounded size with a source file's name are read.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	if s, err := Read(write("A.hs", "x = 1\n"), 100); err != nil || string(s.Text) != "x = 1\n" {
		t.Errorf("%q, %v", s.Text, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "dir.hs"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{write("id_rsa", "secret"), write("B.hs", "\xff\xfe"), write("C.hs", "a\x00b"), write("D.hs", strings.Repeat("x", 101)),
		filepath.Join(dir, "dir.hs"), filepath.Join(dir, "none.hs"), "/etc/shadow"} {
		if s, err := Read(p, 100); err == nil {
			t.Errorf("%s was read: %q", p, s.Text)
		}
	}
}

// A source below another root directory is read there, and below ours where there is
// no other.
func TestReadInRoot(t *testing.T) {
	dir := t.TempDir()
	at := func(elem ...string) string { return filepath.Join(append([]string{dir}, elem...)...) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(at("root", "src"), 0o755))
	must(os.WriteFile(at("secret.hs"), []byte("outside"), 0o644))
	must(os.WriteFile(at("root", "src", "A.hs"), []byte("inside"), 0o644))
	must(unix.Mkfifo(at("root", "fifo.hs"), 0o644))
	root, err := binary.OpenRoot(at("root"))
	must(err)
	defer root.Close()
	if s, err := ReadInRoot(root, "/src/A.hs", 100); err != nil || string(s.Text) != "inside" {
		t.Errorf("a source in the root: %q, %v", s.Text, err)
	}
	if _, err := ReadInRoot(root, "/src/B.hs", 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing source: %v", err)
	}
	if s, err := ReadInRoot(root, "/fifo.hs", 100); err == nil {
		t.Errorf("a FIFO is a source: %q", s.Text)
	}
	if s, err := ReadInRoot(nil, at("secret.hs"), 100); err != nil || string(s.Text) != "outside" {
		t.Errorf("our own root: %q, %v", s.Text, err)
	}
}
