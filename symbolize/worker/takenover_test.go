package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/sandbox"
	"ccagent/internal/testprog"
	"ccagent/symbolize"
	"ccagent/symbolize/sources"
)

// roleTakenOver is a symboliser that an attacker has taken over: it asks the parent for
// what it may not have, and sends what it got as events.
const roleTakenOver = "taken over"

// asked are the questions of such a child. The test's module names named.hs, and the
// folder that it is in.
func asked(dir string) map[string]question {
	of := func(r sources.Ref) question { r.Module = 7; return question{Ref: r, Max: maxSource} }
	return map[string]question{
		"what is named":        of(sources.Ref{Dir: dir, Name: "named.hs"}),
		"/etc/shadow":          of(sources.Ref{Name: "/etc/shadow"}),
		"/etc/shadow as dump":  of(sources.Ref{Name: "/etc/shadow.dump-simpl"}),
		"a neighbour":          of(sources.Ref{Dir: dir, Name: "secret.hs"}),
		"a neighbour by path":  of(sources.Ref{Name: dir + "/secret.hs"}),
		"a neighbour upwards":  of(sources.Ref{Dir: dir + "/deeper/..", Name: "secret.hs"}),
		"a part of a name":     of(sources.Ref{Dir: dir, Name: "named.hs/../secret.hs"}),
		"a link that is named": of(sources.Ref{Dir: dir, Name: "link.hs"}),
		"no source":            of(sources.Ref{Dir: dir, Name: "named.key"}),
		"by a process":         of(sources.Ref{Dir: "/proc/1/root" + dir, Name: "named.hs"}),
		"by its descriptor":    of(sources.Ref{Name: "/proc/self/fd/3"}),
		"below a root":         of(sources.Ref{InRoot: true, Dir: dir, Name: "named.hs"}),
	}
}

func takenOver(c *sandbox.Conn, files []*os.File) error {
	_, b, err := c.Receive(maxRequest)
	if err != nil {
		return err
	}
	var req request
	if err := json.Unmarshal(b, &req); err != nil {
		return err
	}
	w := eventlog.NewWriter(files[fileEvents], &eventlog.WriterOptions{Verbatim: true})
	var id uint32
	report := func(what, text string) error {
		id++
		f := eventlog.File{ID: id, Path: what, TextSize: uint64(len(text))}
		if err := w.Write(0, eventlog.NoCap, &f); err != nil || text == "" {
			return err
		}
		return w.Write(0, eventlog.NoCap, &eventlog.FileText{File: id, Text: []byte(text)})
	}
	for what, q := range asked(req.Modules[0].Path) {
		if err := send(c, askSource, q); err != nil {
			return err
		}
		head, b, err := c.Receive(maxSource)
		if err != nil {
			return err
		}
		if head == failed {
			b = nil
		}
		if err := report(what, string(b)); err != nil {
			return err
		}
	}
	// Core is looked for where the program was compiled, and nowhere else.
	for _, dir := range []string{"/etc", "/root", req.Modules[0].Path + "/.."} {
		q := question{Ref: sources.Ref{Module: 7}, Tree: dir}
		if err := send(c, askDumps, q); err != nil {
			return err
		}
		head, b, err := c.Receive(maxSource)
		if err != nil {
			return err
		}
		if head != failed {
			if err := report("dumps of "+dir, string(b)); err != nil {
				return err
			}
		}
	}
	// The kernel's addresses came as names alone.
	if err := report("job", string(b)); err != nil {
		return err
	}
	return errors.Join(w.Close(), send(c, sendSummary, symbolize.Summary{}))
}

// A symboliser that has been taken over gets from its parent what the module's files name,
// and nothing else: no other file, no list of a folder, no address of the kernel's.
func TestTakenOverAsks(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() == 0 { // whoever reads may enter it
		for d := dir; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("named.hs", "module Main where")
	write("named.key", "secret")
	write("secret.hs", "secret")
	if err := os.Symlink("secret.hs", filepath.Join(dir, "link.hs")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "deeper"), 0o755); err != nil {
		t.Fatal(err)
	}
	exe := write("module", "\x00"+dir+"\x00named.hs\x00link.hs\x00named.key\x00")
	f, err := os.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const symbols = "ffffffff81000000 T startup_64\nffffffff81000100 t do_one\nffffffff81000200 t hidden\n"
	kallsyms, err := os.Open(write("kallsyms", symbols))
	if err != nil {
		t.Fatal(err)
	}
	defer kallsyms.Close()

	symboliserRole = roleTakenOver
	defer func() { symboliserRole = roleSymbolise }()
	got, path := map[string]string{}, ""
	job := Job{
		UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()),
		Modules: []ModuleFile{{ID: 7, Path: dir, File: f, Addresses: []symbolize.Address{{Addr: 1}}}},
		Kernel:  []symbolize.Address{{Addr: 0xffffffff81000104}}, Kallsyms: kallsyms,
	}
	sum, err := Run(t.Context(), job, func(e eventlog.Event) error {
		switch e := e.(type) {
		case *eventlog.File:
			path = e.Path
			got[path] = ""
		case *eventlog.FileText:
			got[path] += string(e.Text)
		}
		return nil
	})
	if err != nil || sum.Degraded != "" {
		t.Fatalf("%v, %+v", err, sum)
	}
	for what := range asked(dir) {
		want := ""
		if what == "what is named" {
			want = "module Main where"
		}
		if text, ok := got[what]; !ok || text != want {
			t.Errorf("%s: got %q (asked %t), want %q", what, text, ok, want)
		}
	}
	for what, text := range got {
		if strings.HasPrefix(what, "dumps of") {
			t.Errorf("%s: got %s", what, text)
		}
	}
	if job := got["job"]; !strings.Contains(job, "do_one") || strings.Contains(job, "hidden") || strings.Contains(job, "startup_64") {
		t.Errorf("of the kernel's symbols the child has\n%s", job)
	}
}

// A symboliser puts an index into the cache for a module that it has, under a name that
// says which, and takes none of another.
func TestTakenOverCache(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) *os.File {
		t.Helper()
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	a, err := newAnswers(t.Context(), &Job{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), CacheDir: filepath.Join(dir, "cache"),
		Modules: []ModuleFile{{ID: 1, File: file("hostile")}, {ID: 2, File: file("victim")}}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	sum := sha256.Sum256([]byte("of the victim"))
	q := func(module uint32, key string) *question {
		return &question{Ref: sources.Ref{Module: module}, Key: key}
	}
	key := hex.EncodeToString(sum[:])
	keep := func(q *question) error {
		if err := a.createIndex(); err != nil {
			t.Fatal(err)
		}
		return a.keepIndex(q)
	}
	if err := keep(q(1, key)); err != nil {
		t.Fatal(err)
	}
	if f, err := a.openIndex(q(2, key)); err == nil {
		f.Close()
		t.Error("the victim's index is the one that another module's was kept as")
	}
	if f, err := a.openIndex(q(1, key)); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
	for _, bad := range []string{"", "../../x", "/etc/passwd", strings.Repeat("/", 64), strings.Repeat("a", 63)} {
		if err := keep(q(1, bad)); err == nil {
			t.Errorf("an index was kept as %q", bad)
		}
	}
	a.discard()
	entries, err := os.ReadDir(filepath.Join(dir, "cache"))
	if err != nil || len(entries) != 1 {
		t.Errorf("the cache holds %v, %v", entries, err)
	}
}

// A child that begins ever more indices, which it may fill and keep open, is refused.
func TestTakenOverBeginsFewIndices(t *testing.T) {
	a, err := newAnswers(t.Context(), &Job{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), CacheDir: filepath.Join(t.TempDir(), "cache"), Modules: []ModuleFile{{ID: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	for range 100 {
		if err := a.createIndex(); err != nil {
			if !errors.Is(err, errProtocol) {
				t.Error(err)
			}
			return
		}
	}
	t.Error("100 indices of one module were begun")
}

// What is no question ends the child, and the look-up goes on without debug information.
func TestBadQuestions(t *testing.T) {
	symboliserRole = "babbler"
	defer func() { symboliserRole = roleSymbolise }()
	f, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, sum, err := run(t, Job{Modules: []ModuleFile{{ID: 1, File: f, Addresses: []symbolize.Address{{Addr: 1}}}}})
	if err != nil || !strings.Contains(sum.Degraded, errProtocol.Error()) {
		t.Errorf("%v, degraded %q", err, sum.Degraded)
	}
}

// babble asks for no module's file.
func babble(c *sandbox.Conn, _ []*os.File) error {
	if _, _, err := c.Receive(maxRequest); err != nil {
		return err
	}
	if err := send(c, askSource, question{Ref: sources.Ref{Module: 99, Name: "/etc/shadow"}}); err != nil {
		return err
	}
	if _, b, err := c.Receive(maxSource); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the parent answered %q, %v", b, err)
	}
	return nil
}

// mutations are deterministic damages of a file: bytes changed, stretches of it zeroed,
// repeated or cut off, headers first.
func mutations(b []byte, count int) func(yield func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		state := uint64(0x9e3779b97f4a7c15)
		next := func(n int) int {
			state ^= state << 13
			state ^= state >> 7
			state ^= state << 17
			return int(state % uint64(n))
		}
		for i := range count {
			m := append([]byte(nil), b...)
			switch i % 5 {
			case 0: // the ELF header and program headers
				for range 4 {
					m[next(min(len(m), 1024))] = byte(next(256))
				}
			case 1: // section headers, at the end
				for range 8 {
					m[len(m)-1-next(min(len(m), 4096))] = byte(next(256))
				}
			case 2: // anywhere
				for range 64 {
					m[next(len(m))] ^= 1 << next(8)
				}
			case 3: // a stretch of ones: lengths and counts that are far too large
				at := next(len(m))
				for j := at; j < min(len(m), at+16+next(64)); j++ {
					m[j] = 0xff
				}
			case 4:
				m = m[:next(len(m))]
			}
			if !yield(i, m) {
				return
			}
		}
	}
}

// Damaged binaries do no harm: whatever is in them, the worker ends in time with an answer
// or a reason, and the parent takes nothing wrong from it. Names and call frame information
// are read of each.
func TestMutatedBinaries(t *testing.T) {
	count := 269
	if testing.Short() {
		count = 50
	}
	exe := testprog.Build(t, "rev", testprog.Options{})
	whole, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	_, addrs := open(t, exe)
	addrs = addrs[:min(len(addrs), 200)]
	dir := t.TempDir()
	// Many at a time: a child for each would take most of the time to start.
	var modules []ModuleFile
	var files []*os.File
	for i, b := range mutations(whole, count) {
		path := filepath.Join(dir, fmt.Sprintf("mutated-%d", i))
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		modules = append(modules, ModuleFile{ID: uint32(i + 1), Path: path, File: f, Addresses: addrs})
		files = append(files, f)
	}
	const atOnce = 45
	for from := 0; from < count; from += atOnce {
		part := modules[from:min(count, from+atOnce)]
		s, sum, err := run(t, Job{Modules: part})
		if err != nil || sum.Degraded != "" {
			t.Errorf("mutations from %d: %v, degraded %q", from, err, sum.Degraded)
		}
		if len(s.modules) != len(part) {
			t.Errorf("mutations from %d: %d of %d modules were answered for", from, len(s.modules), len(part))
		}
	}
	tables, problems := 0, 0
	CompileUnwind(t.Context(), nil, files, func(_ int, u UnwindTable) {
		tables++
		if u.Err != nil {
			problems++
			for _, word := range []string{"panic", "runtime error", "exit status", "signal"} {
				if strings.Contains(u.Err.Error(), word) {
					t.Errorf("call frame information: %v", u.Err)
				}
			}
		}
	})
	if tables != count || problems == 0 || problems == count {
		t.Errorf("%d tables of %d files, %d with an error", tables, count, problems)
	}
}
