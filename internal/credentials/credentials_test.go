package credentials

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

const stranger = 1_234_567 // a uid that nobody has

// Code that runs with a user's credentials has that user's file access and no capability; in
// particular it cannot enter another process's root directory, which CAP_SYS_PTRACE permits.
func TestRun(t *testing.T) {
	testprog.NeedRoot(t)
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	user := Credentials{UID: stranger, GID: stranger, Groups: []uint32{stranger + 1}}
	for _, path := range []string{secret, "/proc/1/root/etc/passwd", "/proc/1/environ"} {
		err := user.Run(func() error {
			f, err := os.Open(path)
			if err == nil {
				f.Close()
			}
			return err
		})
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("open %s as a stranger: %v", path, err)
		}
	}
	err := user.Run(func() error {
		raw, err := os.ReadFile("/proc/thread-self/status")
		if err != nil {
			return err
		}
		for _, line := range []string{"CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "Groups:\t1234568 \n"} {
			if !strings.Contains(string(raw), line) {
				t.Errorf("no %q in\n%s", line, raw)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The change does not outlive the call.
	for range 20 {
		if _, err := os.ReadFile(secret); err != nil {
			t.Fatal("root's own rights are gone: ", err)
		}
	}
	root := Credentials{}
	if err := root.Run(func() error { _, err := os.ReadFile(secret); return err }); err != nil {
		t.Error("root for itself: ", err)
	}
	nobody := Nobody()
	if err := nobody.Run(func() error { _, err := os.ReadFile(secret); return err }); !errors.Is(err, fs.ErrPermission) {
		t.Error("nobody reads root's file: ", err)
	}
	if err := nobody.Run(func() error { _, err := os.ReadFile("/proc/version"); return err }); err != nil {
		t.Error("nobody cannot read what everyone may: ", err)
	}
}
