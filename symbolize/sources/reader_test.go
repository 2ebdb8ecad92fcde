package sources

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"ccagent/internal/credentials"
	"ccagent/internal/testprog"
	"ccagent/symbolize/binary"

	"golang.org/x/sys/unix"
)

const stranger = 1_234_567 // a uid that no one has

// Root's reader reads what the program's own user may, along no link.
func TestReaderHasTheUsersRights(t *testing.T) {
	testprog.NeedRoot(t)
	top, err := os.MkdirTemp("", "ccagent-sources-") // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	dir := filepath.Join(top, "src")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	must(os.Chmod(top, 0o755))
	must(os.Mkdir(dir, 0o755))
	must(os.Mkdir(at("closed"), 0o700))
	write := func(name string, mode os.FileMode, owner int) {
		t.Helper()
		must(os.WriteFile(at(name), []byte("-- "+name), mode))
		must(os.Chown(at(name), owner, owner))
	}
	write("Open.hs", 0o644, 0)
	write("Own.hs", 0o600, stranger)
	write("Group.hs", 0o640, 0)
	must(os.Chown(at("Group.hs"), 0, stranger+1))
	write("Root.hs", 0o600, 0)
	write("closed/Open.hs", 0o644, 0)
	must(os.Symlink(at("Own.hs"), at("Link.hs")))
	must(os.Symlink(dir, filepath.Join(top, "l")))
	must(unix.Mkfifo(at("Fifo.hs"), 0o666))

	user, err := NewReader(credentials.Credentials{UID: stranger, GID: stranger, Groups: []uint32{stranger + 1}})
	must(err)
	defer user.Close()
	root, err := binary.OpenRoot(top)
	must(err)
	defer root.Close()
	for _, c := range []struct {
		path string
		err  error
	}{
		{"Open.hs", nil}, {"Own.hs", nil}, {"Group.hs", nil},
		{"Root.hs", fs.ErrPermission}, {"closed/Open.hs", fs.ErrPermission},
		{"Link.hs", binary.ErrLink}, {"../l/Open.hs", binary.ErrLink},
		{"Fifo.hs", ErrNoSource}, {"None.hs", fs.ErrNotExist},
	} {
		for _, in := range []*os.File{nil, root} {
			path := dir + "/" + c.path
			if in != nil {
				path = "/src/" + c.path
			}
			s, err := user.Read(in, path, 1000)
			if !errors.Is(err, c.err) || err == nil && string(s.Text) != "-- "+c.path {
				t.Errorf("%s: %q, %v; want %v", path, s.Text, err, c.err)
			}
		}
	}
	if s, err := user.Read(nil, "/proc/1/root"+at("Open.hs"), 1000); err == nil {
		t.Errorf("read %q by a process's root directory", s.Text)
	}
	anyone, err := NewReader(credentials.Nobody())
	must(err)
	defer anyone.Close()
	if _, err := anyone.Read(nil, at("Own.hs"), 1000); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("anyone reads a user's own file: %v", err)
	}
}
