package worker

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ccagent/eventlog"
	"ccagent/internal/sandbox"
	"ccagent/internal/testprog"
	"ccagent/symbolize"
)

func TestMain(m *testing.M) {
	Main()
	sandbox.Main(map[string]sandbox.Role{roleTakenOver: takenOver, "asks once": askOnce, "babbler": babble})
	os.Exit(m.Run())
}

// open opens a file and lists addresses in its code.
func open(t *testing.T, path string) (*os.File, []symbolize.Address) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	e, err := elf.NewFile(f)
	if err != nil {
		t.Fatal(err)
	}
	text := e.Section(".text")
	var addrs []symbolize.Address
	for a := text.Addr; a < text.Addr+text.Size; a += 32 {
		addrs = append(addrs, symbolize.Address{Addr: a})
	}
	return f, addrs
}

type seen struct {
	bindings  map[string]bool
	texts     int
	text      string            // of all files
	files     map[string]string // path to problem
	locations map[uint64]eventlog.Location
	modules   []eventlog.ModuleSymbols
	core      string // text of all
}

func run(t *testing.T, job Job) (seen, Summary, error) {
	t.Helper()
	s := seen{bindings: map[string]bool{}, locations: map[uint64]eventlog.Location{}, files: map[string]string{}}
	sum, err := Run(context.Background(), job, func(e eventlog.Event) error {
		switch e := e.(type) {
		case *eventlog.Binding:
			s.bindings[e.Module+"."+e.Name] = true
		case *eventlog.FileText:
			s.texts += len(e.Text)
			s.text += string(e.Text)
		case *eventlog.File:
			s.files[e.Path] = e.Problem
		case *eventlog.CoreText:
			s.core += string(e.Text)
		case *eventlog.ModuleSymbols:
			s.modules = append(s.modules, *e)
		case *eventlog.Locations:
			for _, l := range e.Locations {
				s.locations[l.Addr] = l
			}
		}
		return nil
	})
	return s, sum, err
}

func TestRun(t *testing.T) {
	exe := testprog.Build(t, "rev", testprog.Options{})
	f, addrs := open(t, exe)
	s, sum, err := run(t, Job{Modules: []ModuleFile{{ID: 7, Path: exe, File: f, Addresses: addrs}}, EmbedSource: true})
	if err != nil || sum.Degraded != "" {
		t.Fatalf("Run: %v, degraded %q", err, sum.Degraded)
	}
	if len(s.locations) != len(addrs) || sum.Addresses != len(addrs) {
		t.Errorf("%d of %d addresses were answered, summary %+v", len(s.locations), len(addrs), sum)
	}
	if !s.bindings["Main.rev"] {
		t.Errorf("no binding Main.rev among %d", len(s.bindings))
	}
	if s.texts == 0 {
		t.Errorf("no source text came: %v", s.files)
	}
}

func TestMemoryBudget(t *testing.T) {
	exe := testprog.Build(t, "rev", testprog.Options{})
	f, addrs := open(t, exe)
	_, sum, err := run(t, Job{Modules: []ModuleFile{{ID: 1, Path: exe, File: f, Addresses: addrs}}, MemoryLimit: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	said := sum.Degraded != ""
	for _, p := range symbolize.Lines(sum.Problems) {
		said = said || strings.Contains(p, "budget") || strings.Contains(p, "limit")
	}
	if !said {
		t.Errorf("64 KB were enough for everything: %+v", sum)
	}
}

// What a large program's debug information has beyond the budget goes by symbols,
// and the log says so.
func TestMemoryBudgetLeavesSymbols(t *testing.T) {
	objcopy := testprog.NeedTool(t, "objcopy", "binutils")
	exe := testprog.Build(t, "example", testprog.Options{Dynamic: true})
	dir := t.TempDir()
	info, big := filepath.Join(dir, "info"), filepath.Join(dir, "big")
	copySections := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(objcopy, args...).CombinedOutput(); err != nil {
			t.Fatalf("objcopy %q: %v\n%s", args, err, out)
		}
	}
	copySections("--dump-section", ".debug_info="+info, exe, filepath.Join(dir, "same"))
	units, err := os.ReadFile(info)
	if err != nil {
		t.Fatal(err)
	}
	// Hundreds of copies of the first unit, and the program's units behind them.
	first := units[:4+binary.LittleEndian.Uint32(units)]
	const copies = 16 << 20
	if err := os.WriteFile(info, append(bytes.Repeat(first, copies/len(first)), units...), 0o644); err != nil {
		t.Fatal(err)
	}
	copySections("--update-section", ".debug_info="+info, exe, big)

	f, addrs := open(t, exe)
	whole, full, err := run(t, Job{Modules: []ModuleFile{{ID: 1, Path: exe, File: f, Addresses: addrs}}})
	if err != nil || full.Degraded != "" {
		t.Fatalf("the program itself: %v, %+v", err, full)
	}
	f, _ = open(t, big)
	got, sum, err := run(t, Job{Modules: []ModuleFile{{ID: 1, Path: big, File: f, Addresses: addrs}}, MemoryLimit: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d addresses in blocks, %d of %d named; degraded %q, %q", sum.InBlocks, full.InBlocks, sum.Resolved, full.Resolved, sum.Degraded, sum.Problems)
	if sum.InBlocks >= full.InBlocks {
		t.Fatal("32 MB were enough for everything")
	}
	if !strings.Contains(strings.Join(append(symbolize.Lines(sum.Problems), sum.Degraded), "\n"), "--symbolize-memory") {
		t.Errorf("the budget is not named: %+v", sum)
	}
	if len(got.modules) != 1 || !strings.Contains(got.modules[0].Problem, "--symbolize-memory") {
		t.Errorf("the log does not say it: %+v", got.modules)
	}
	for a, l := range whole.locations {
		if g, ok := got.locations[a]; !ok || l.Binding != 0 && g.Binding == 0 {
			t.Fatalf("%#x was %+v, and is %+v", a, l, g)
		}
	}
}

func TestTimeBudget(t *testing.T) {
	exe := testprog.Build(t, "rev", testprog.Options{})
	f, addrs := open(t, exe)
	_, sum, err := run(t, Job{Modules: []ModuleFile{{ID: 1, Path: exe, File: f, Addresses: addrs}}, Timeout: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(sum.Degraded, "time budget") {
		t.Errorf("degraded is %q", sum.Degraded)
	}
}

func TestHostileModule(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(path, append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 200)...), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, sum, err := run(t, Job{Modules: []ModuleFile{{ID: 1, Path: path, File: f, Addresses: []symbolize.Address{{Addr: 1}}}}})
	if err != nil || len(s.modules) != 1 {
		t.Fatalf("%v, %+v, %+v", err, sum, s.modules)
	}
}

// TestChildRights looks at a child from outside while it waits for its job.
func TestChildRights(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "rev", testprog.Options{})
	f, addrs := open(t, exe)
	var status string
	stopped := false
	_, err := Run(context.Background(), Job{UID: 12345, GID: 12345, Modules: []ModuleFile{{ID: 1, Path: exe, File: f, Addresses: addrs}}}, func(eventlog.Event) error {
		if stopped {
			return nil
		}
		stopped = true
		out, err := exec.Command("pgrep", "-P", strconv.Itoa(os.Getpid()), "-f", "ccagent-symbolize").Output()
		if err == nil {
			b, _ := os.ReadFile("/proc/" + strings.TrimSpace(string(out)) + "/status")
			status = string(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if status == "" {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "a child that is not done before it is looked at"})
	}
	for _, want := range []string{"CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "CapInh:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(status, want) {
			t.Errorf("child's status lacks %q:\n%s", want, status)
		}
	}
	for _, taken := range []string{"Uid:\t0\t", "Uid:\t12345\t", "Uid:\t65534\t"} {
		if strings.Contains(status, taken) {
			t.Errorf("the child's uid is somebody's:\n%s", status)
		}
	}
}

// Dumps are found and read with the rights of the log's owner: by the child, or
// where the owner is root, by the parent on its behalf.
func TestCore(t *testing.T) {
	dir := t.TempDir()
	inputs := testprog.CopySource(t, "fac", dir)
	testprog.Compile(t, "", dir, append([]string{"-v0", "-O2", "-g3", "-ddump-simpl", "-ddump-to-file", "-dsuppress-all", "-dno-suppress-ticks", "-dumpdir", "private/", "-o", "fac"}, inputs...)...)
	if err := os.Chmod(filepath.Join(dir, "private"), 0o700); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "fac")
	f, addrs := open(t, exe)
	job := Job{Modules: []ModuleFile{{ID: 7, Path: exe, File: f, Addresses: addrs}}, EmbedSource: true, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	s, sum, err := run(t, job)
	if err != nil || sum.Degraded != "" || sum.Cores == 0 || !strings.Contains(s.core, "src<Main.hs:") {
		t.Errorf("the owner's: %v, %+v, %d bytes of Core", err, sum, len(s.core))
	}
	if os.Geteuid() == 0 {
		job.UID, job.GID = 65534, 65534
		s, sum, err := run(t, job)
		if err != nil || sum.Degraded != "" || s.core != "" {
			t.Errorf("a stranger's: %v, %+v, %d bytes of Core", err, sum, len(s.core))
		}
	}
}
