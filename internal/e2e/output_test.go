package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"

	"golang.org/x/sys/unix"
)

// If the log cannot be written, the program is not run.
func TestUnwritableOutput(t *testing.T) {
	testprog.NeedRoot(t)
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "no", "such", "dir", "l"), dir, "/proc/l", "/dev/null"} {
		r := run(t, command(t, ccagent, "record", "-o", path, "--", "echo", "ran"))
		if r.status != 125 || r.stdout != "" {
			t.Errorf("-o %s: status %d, the program printed %q; want 125 and nothing\n%s", path, r.status, r.stdout, r.stderr)
		}
		wantLine(t, r.stderr, path, "-o")
	}
}

// A symbolic link that somebody put at the log's path in a shared folder is not followed.
func TestPlantedLinks(t *testing.T) {
	testprog.NeedRoot(t)
	shared := sharedDir(t, 0o777|os.ModeSticky)
	victim := filepath.Join(t.TempDir(), "victim")
	const precious = "precious\n"
	for _, c := range []struct {
		name  string
		plant func(path string) error
	}{
		{"symbolic link to a file", func(p string) error { return os.Symlink(victim, p) }},
		{"symbolic link to nothing", func(p string) error { return os.Symlink(victim+".new", p) }},
		{"hard link", func(p string) error {
			planted := filepath.Join(shared, "theirs")
			if err := os.WriteFile(planted, []byte(precious), 0o666); err != nil {
				return err
			}
			return os.Link(planted, p)
		}},
		{"another user's file", func(p string) error { return os.WriteFile(p, []byte(precious), 0o666) }},
		{"fifo", func(p string) error { return unix.Mkfifo(p, 0o666) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(victim, []byte(precious), 0o600); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(shared, strings.ReplaceAll(c.name, " ", "-"))
			if err := c.plant(path); err != nil {
				t.Fatal(err)
			}
			if err := unix.Lchown(path, nobodyID, nobodyID); err != nil {
				t.Fatal(err)
			}
			r := run(t, command(t, ccagent, "record", "-o", path, "--", "echo", "ran"))
			if r.status != 125 || r.stdout != "" {
				t.Errorf("status %d, the program printed %q; want 125 and nothing", r.status, r.stdout)
			}
			wantLine(t, r.stderr, path)
			if got, err := os.ReadFile(victim); err != nil || string(got) != precious {
				t.Errorf("the victim holds %q (%v)", got, err)
			}
			if _, err := os.Lstat(victim + ".new"); err == nil {
				t.Error("a file was made behind the link")
			}
			if got, err := os.ReadFile(filepath.Join(shared, "theirs")); err == nil && string(got) != precious {
				t.Errorf("the linked file holds %q", got)
			}
		})
	}
}

// An older log of the same user is replaced, not overwritten: a process that has it open
// keeps it.
func TestOlderLogIsReplaced(t *testing.T) {
	testprog.NeedRoot(t)
	path := filepath.Join(t.TempDir(), "run.eventlog")
	if err := os.WriteFile(path, []byte("older"), 0o644); err != nil {
		t.Fatal(err)
	}
	old, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if r := run(t, command(t, ccagent, "record", "-o", path, "--", "true")); r.status != 0 {
		t.Fatalf("status %d\n%s", r.status, r.stderr)
	}
	kept := make([]byte, 16)
	if n, _ := old.Read(kept); string(kept[:n]) != "older" {
		t.Errorf("the older log now holds %q", kept[:n])
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the log has mode %v, want 0600", info.Mode().Perm())
	}
	readLog(t, path).wantWhole(t)
}

// If the disk is full the program still runs to its end, the failure is reported, and what
// was written before can be read.
func TestDiskFull(t *testing.T) {
	testprog.NeedRoot(t)
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=400k"); err != nil {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "the right to mount a tmpfs: " + err.Error()})
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	log := filepath.Join(disk, "run.eventlog")
	exe := testprog.Build(t, "rev", testprog.Options{})
	r := run(t, command(t, ccagent, "record", "-F", "5000", "--max-overhead", "0", "-o", log, "--", exe, "220", "20000"))
	if r.status != 125 {
		t.Errorf("status %d, want 125", r.status)
	}
	if strings.TrimSpace(r.stdout) == "" {
		t.Error("the program did not run to its end")
	}
	wantLine(t, r.stderr, "no space left")
	if l := readLog(t, log); len(l.samples) == 0 {
		t.Error("nothing of what was captured is in the log")
	}
	var info infoJSON
	view(t, &info, "info", log)
	if len(info.Events) == 0 || info.Events[0].Samples == 0 {
		t.Errorf("info shows no samples: %+v", info.Events)
	}
}

// kill -9 loses only what was not flushed yet.
func TestKilledAgent(t *testing.T) {
	testprog.NeedRoot(t)
	log := filepath.Join(t.TempDir(), "run.eventlog")
	exe := testprog.Build(t, "spin31", testprog.Options{})
	target := command(t, exe, endless)
	begin(t, target)
	cmd := command(t, ccagent, "attach", "-F", "997", "-o", log, pidOf(target))
	wait := background(t, cmd)
	before := 0
	eventually(t, "a hundred samples in the log", func() bool {
		before = 0
		has(log, func(e eventlog.Event) bool {
			if isSample(e) {
				before++
			}
			return false
		})
		return before >= 100
	})
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if r := wait(); r.status != 128+9 {
		t.Fatalf("status %d, want 137", r.status)
	}
	var info infoJSON
	view(t, &info, "info", log)
	if len(info.Events) != 2 || int(info.Events[0].Samples) < before {
		t.Errorf("info shows %+v; %d samples had been flushed", info.Events, before)
	}
	r := run(t, command(t, ccview, "info", log))
	if text := r.stdout + r.stderr; r.status != 0 || !strings.Contains(text, "ccagent symbolize") {
		t.Errorf("info: status %d; want it to say that the end is missing and what to do\n%s", r.status, text)
	}
	if err := target.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the attached program did not survive: %v", err)
	}

	// The names can be added later.
	if r := run(t, command(t, ccagent, "symbolize", log)); r.status != 0 {
		t.Fatalf("ccagent symbolize: status %d\n%s", r.status, r.stderr)
	}
	hotOf(t, log).element(t, "Main.three")
}

// ccview opens damaged logs as far as they go and refuses other files, with the offset.
func TestDamagedLogs(t *testing.T) {
	whole, _ := record(t, nil, testprog.Build(t, "spin31", testprog.Options{}), "5000")
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name, path string
		says       string
	}{
		{"empty", write("empty", nil), "empty"},
		{"text", write("text", bytes.Repeat([]byte("this is not a log\n"), 1000)), "not"},
		{"an executable", ccview, "not"},
		{"header cut off", write("header", data[:20]), ""},
		{"missing", filepath.Join(dir, "missing"), "no such file"},
		{"a folder", dir, "directory"},
	} {
		for _, view := range []string{"hot", "stacks", "info"} {
			r := run(t, command(t, ccview, view, c.path))
			if r.status != 1 {
				t.Errorf("%s: ccview %s: status %d, want 1\n%s", c.name, view, r.status, r.stderr)
			}
			wantLine(t, r.stderr, filepath.Base(c.path), c.says)
			if n := strings.Count(strings.TrimSpace(r.stderr), "\n"); n > 0 {
				t.Errorf("%s: ccview %s: %d lines, want one:\n%s", c.name, view, n+1, r.stderr)
			}
		}
	}
	if r := run(t, command(t, ccview, "hot")); r.status != 2 {
		t.Errorf("ccview hot without a file: status %d, want 2", r.status)
	}
	if r := run(t, command(t, ccview, "hot", "--no-such-flag", whole)); r.status != 2 {
		t.Errorf("ccview hot --no-such-flag: status %d, want 2", r.status)
	}

	ends := sampleEnds(t, data)
	for _, n := range []int{1, len(ends) / 4, len(ends) / 2, len(ends) - 1} {
		const torn = 3 // bytes of the next record
		path := write("cut", data[:ends[n-1]+torn])
		var info infoJSON
		view(t, &info, "info", path)
		if len(info.Events) != 2 || int(info.Events[0].Samples) != n {
			t.Errorf("cut in the record after sample %d of %d: info shows %+v", n, len(ends), info.Events)
		}
		for _, v := range []string{"hot", "stacks"} {
			if r := run(t, command(t, ccview, v, path)); r.status != 0 {
				t.Errorf("cut in the record after sample %d of %d: ccview %s: status %d\n%s", n, len(ends), v, r.status, r.stderr)
			}
		}
	}
}

// sampleEnds gives where in the log each sample of the first event ends.
func sampleEnds(t *testing.T, log []byte) []int64 {
	t.Helper()
	var ends []int64
	r := eventlog.NewReader(bytes.NewReader(log))
	for r.Next() {
		if s, ok := r.Record().Event.(*eventlog.Sample); ok && s.Event == 0 {
			ends = append(ends, r.Offset())
		}
	}
	if len(ends) < 8 {
		t.Fatalf("%d samples, too few to cut the log between them", len(ends))
	}
	return ends
}
