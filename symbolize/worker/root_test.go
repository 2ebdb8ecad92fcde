package worker

import (
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ccagent/internal/testprog"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/sources"
)

// compDir is where the compiler ran, by the program's debug information.
func compDir(t *testing.T, exe string) string {
	t.Helper()
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	for r := d.Reader(); ; r.SkipChildren() {
		e, err := r.Next()
		if err != nil || e == nil {
			t.Fatal("no unit of Main.hs: ", err)
		}
		name, _ := e.Val(0x03).(string) // DW_AT_name
		if dir, ok := e.Val(0x1b).(string); ok && filepath.Base(name) == "Main.hs" && filepath.IsAbs(dir) {
			return filepath.Join(dir, filepath.Dir(name))
		}
	}
}

// Sources of a program with another root directory are those below it, whoever reads
// them: the parent for root's logs, the child for others'. A link there that leads out
// is not followed.
func TestSourcesBelowRoot(t *testing.T) {
	exe := testprog.Build(t, "rev", testprog.Options{})
	f, addrs := open(t, exe)
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	where := filepath.Join(dir, compDir(t, exe))
	if err := os.MkdirAll(where, 0o755); err != nil {
		t.Fatal(err)
	}
	source, secret := filepath.Join(where, "Main.hs"), filepath.Join(t.TempDir(), "secret.hs")
	for _, path := range []string{source, secret} {
		if err := os.WriteFile(path, []byte("-- "+path+"\nmodule Main where\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	root, err := binary.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	uids := []uint32{uint32(os.Geteuid())}
	if uids[0] == 0 {
		uids = append(uids, 54321)
	}
	texts := func(uid uint32) string {
		s, sum, err := run(t, Job{UID: uid, GID: uid, EmbedSource: true,
			Modules: []ModuleFile{{ID: 7, Path: exe, File: f, Addresses: addrs, Root: root}}})
		if err != nil || sum.Degraded != "" {
			t.Fatalf("Run: %v, degraded %q", err, sum.Degraded)
		}
		return s.text
	}
	for _, uid := range uids {
		if got := texts(uid); !strings.Contains(got, "-- "+source) {
			t.Errorf("as uid %d: the source below the root is not in the log, but %q", uid, got)
		}
	}
	if err := os.Remove(source); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, source); err != nil {
		t.Fatal(err)
	}
	for _, uid := range uids {
		if got := texts(uid); strings.Contains(got, secret) {
			t.Errorf("as uid %d: a link led out of the root", uid)
		}
	}
}

// The child may ask for a file below the root of a module that has one, and of a module
// of the job.
func TestRootedPath(t *testing.T) {
	dir := t.TempDir()
	root, err := binary.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := os.WriteFile(filepath.Join(dir, "B.hs"), []byte("below"), 0o644); err != nil {
		t.Fatal(err)
	}
	named := filepath.Join(t.TempDir(), "named")
	if err := os.WriteFile(named, []byte("\x00/B.hs\x00"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(named)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, err := newAnswers(t.Context(), &Job{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Modules: []ModuleFile{{ID: 1, File: f, Root: root}, {ID: 2, File: f}}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	if s, err := a.source(&sources.Ref{Module: 1, InRoot: true, Name: "/B.hs"}, 100); err != nil || string(s.Text) != "below" {
		t.Errorf("below its root: %q, %v", s.Text, err)
	}
	for _, ref := range []sources.Ref{
		{Module: 2, InRoot: true, Name: "/B.hs"}, // it has none
		{Module: 1, Name: "/B.hs"},               // our own has no such file
	} {
		if s, err := a.source(&ref, 100); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: %q, %v", ref, s.Text, err)
		}
	}
}
