package hwtest

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// cpio extracts the files of an archive that Write has written.
func TestInitramfsAgainstCpio(t *testing.T) {
	cpio := testprog.NeedTool(t, "cpio", "")
	files := Initramfs{
		"/init":           {Data: []byte("#!"), Mode: 0o755},
		"/empty":          {Mode: 0o600},
		"/a/b/c.txt":      {Data: []byte("in a folder"), Mode: 0o644},
		"/a/odd":          {Data: bytes.Repeat([]byte{7}, 4097), Mode: 0o640},
		"/bin/longer-nam": {Data: []byte{0}, Mode: 0o755},
	}
	var packed bytes.Buffer
	if err := files.Write(&packed); err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(cpio, "--extract", "--quiet")
	cmd.Dir, cmd.Stdin = dir, zip
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("cpio: %v\n%s", err, out)
	}
	for name, want := range files {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, want.Data) || info.Mode() != want.Mode {
			t.Errorf("%s: %d bytes of mode %v, %v", name, len(got), info.Mode(), err)
		}
	}
	for _, name := range strings.Fields("dev proc sys tmp a a/b bin") {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != fs.ModeDir|0o755 {
			t.Errorf("/%s: %v, %v", name, info, err)
		}
	}
}
