package worker

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ccagent/internal/sandbox"
	"ccagent/internal/testprog"
	"ccagent/symbolize/cfi"
	"ccagent/symbolize/elffile"
)

func compileAll(t *testing.T, ctx context.Context, paths ...string) []UnwindTable {
	t.Helper()
	var files []*os.File
	for _, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	tables := make([]UnwindTable, len(files))
	next := 0
	CompileUnwind(ctx, nil, files, func(i int, u UnwindTable) {
		if i != next {
			t.Errorf("table %d after %d", i, next)
		}
		tables[i], next = u, i+1
	})
	if next != len(files) {
		t.Errorf("%d tables of %d files", next, len(files))
	}
	return tables
}

// A child's tables are those that this process would make, and what one file
// cannot give costs the others nothing.
func TestCompileUnwind(t *testing.T) {
	exe := testprog.Build(t, "rev", testprog.Options{})
	dir := t.TempDir()
	text, cut := filepath.Join(dir, "text"), filepath.Join(dir, "cut")
	whole, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	for path, b := range map[string][]byte{text: []byte("no program\n"), cut: whole[:len(whole)/2]} {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := compileAll(t, context.Background(), text, exe, cut)
	if got[0].Err == nil || len(got[0].Rows) != 0 {
		t.Errorf("no ELF file: %v, %d bytes of rows", got[0].Err, len(got[0].Rows))
	}

	file, err := os.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f, err := elffile.Open(file, int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	want, err := cfi.Compile(f, cfi.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	var rows, rules []byte
	for _, r := range want.Rows {
		rows = r.Append(rows)
	}
	for i := range want.Rules {
		rules = want.Rules[i].Append(rules)
	}
	if u := got[1]; u.Err != nil || u.Base != want.Base || !bytes.Equal(u.Rows, rows) || !bytes.Equal(u.Rules, rules) {
		t.Errorf("base %#x, %d bytes of rows, %d of rules, %v; want %#x, %d, %d", u.Base, len(u.Rows), len(u.Rules), u.Err, want.Base, len(rows), len(rules))
	}
}

func TestCompileUnwindCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got := compileAll(t, ctx, "/proc/self/exe"); !errors.Is(got[0].Err, context.Canceled) {
		t.Errorf("cancelled: %v", got[0].Err)
	}
}

func message(t testing.TB, head uint64, b []byte) []byte {
	var out bytes.Buffer
	if err := sandbox.WriteMessage(&out, head, b); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func tableMessages(t testing.TB, rows []cfi.Row, rules int) []byte {
	var b []byte
	for _, r := range rows {
		b = r.Append(b)
	}
	return append(message(t, unwindRows, b), message(t, 0x400000, make([]byte, rules*cfi.RuleSize))...)
}

// What a child sends is held against what the walker counts on.
func TestReadUnwind(t *testing.T) {
	good := []cfi.Row{{Addr: 0, Rule: 1}, {Addr: 8, Rule: 0}}
	if u, err := readUnwind(bytes.NewReader(tableMessages(t, good, 2))); err != nil || u.Base != 0x400000 || len(u.Rows) != 2*cfi.RowSize {
		t.Errorf("%+v, %v", u, err)
	}
	for name, b := range map[string][]byte{
		"rule beyond the rules":  tableMessages(t, good, 1),
		"rows out of order":      tableMessages(t, []cfi.Row{{Addr: 8}, {Addr: 0}}, 1),
		"one address twice":      tableMessages(t, []cfi.Row{{Addr: 8}, {Addr: 8}}, 1),
		"a part of a row":        append(message(t, unwindRows, make([]byte, 7)), message(t, 0, nil)...),
		"a part of a rule":       append(message(t, unwindRows, nil), message(t, 0, make([]byte, 3))...),
		"a status of its own":    message(t, 9, nil),
		"no rules":               message(t, unwindRows, nil),
		"more than there may be": {unwindRows, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10},
	} {
		if u, err := readUnwind(bytes.NewReader(b)); err == nil {
			t.Errorf("%s: %+v is taken", name, u)
		}
	}
}

func FuzzReadUnwind(f *testing.F) {
	f.Add(tableMessages(f, []cfi.Row{{Addr: 0, Rule: 1}, {Addr: 8, Rule: 0}}, 2))
	f.Add(message(f, unwindFailed, []byte("no")))
	f.Add(message(f, unwindNone, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		u, err := readUnwind(bytes.NewReader(b))
		if err != nil {
			return
		}
		if err := u.check(); err != nil {
			t.Error(err)
		}
	})
}
