package binary

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Below a root directory, links mean what they mean to a process that has that root:
// none leads out of it.
func TestOpenInRoot(t *testing.T) {
	dir := t.TempDir()
	at := func(elem ...string) string { return filepath.Join(append([]string{dir}, elem...)...) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(at("root", "src", "deep"), 0o755))
	must(os.MkdirAll(at("root", "etc"), 0o755))
	must(os.WriteFile(at("secret.hs"), []byte("outside"), 0o644))
	must(os.WriteFile(at("root", "src", "A.hs"), []byte("inside"), 0o644))
	must(os.WriteFile(at("root", "etc", "passwd"), []byte("inside too"), 0o644))
	must(unix.Mkfifo(at("root", "fifo.hs"), 0o644))
	for link, to := range map[string]string{
		"up.hs": "../secret.hs", "far.hs": "../../../../../../etc/passwd", "abs.hs": "/etc/passwd", "out.hs": at("secret.hs"),
		"dir": "/src", "self": "/proc/self/root", "loop": "loop", "cwd": "/proc/self/cwd",
	} {
		must(os.Symlink(to, at("root", link)))
	}
	root, err := OpenRoot(at("root"))
	must(err)
	defer root.Close()
	for path, want := range map[string]string{
		"/src/A.hs": "inside", "src/A.hs": "inside", "/dir/A.hs": "inside", "/src/deep/../A.hs": "inside", "/../../src/A.hs": "inside",
		"/abs.hs": "inside too", "/far.hs": "inside too", "/fifo.hs": "",
		"/up.hs": "-", "/out.hs": "-", "/../secret.hs": "-", "/self/etc/passwd": "-", "/cwd/inroot.go": "-", "/loop": "-", at("secret.hs"): "-",
		"": "-", "/src/A.hs\x00": "-",
	} {
		got := "-"
		f, err := OpenInRoot(root, path)
		if err == nil {
			text, err := io.ReadAll(f)
			if err != nil {
				t.Errorf("%q: %v", path, err)
			}
			got = string(text)
			f.Close()
		}
		if got != want {
			t.Errorf("%q has %q, want %q (%v)", path, got, want, err)
		}
	}
}
