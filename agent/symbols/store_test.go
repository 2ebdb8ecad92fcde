package symbols

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ccagent/agent/process"
	"ccagent/eventlog"
	"ccagent/internal/credentials"
	"ccagent/internal/testprog"
	"ccagent/symbolize"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/worker"
)

func TestMain(m *testing.M) {
	worker.Main()
	os.Exit(m.Run())
}

// Addresses between some that were looked up have the names that looking them up would give, mostly without asking for
// them.
func TestNamesHoldForStretches(t *testing.T) {
	exe := testprog.Build(t, "example", testprog.Options{})
	f, err := os.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	elf, err := elffile.Open(f, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	mod := &process.Module{ID: 7, Path: exe, File: f, Binary: binary.IdentifyFile(elf)}
	text := elf.Section(".text")
	seen := func(from, step uint64) []Seen {
		one := Seen{Module: mod, Reader: credentials.Credentials{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}}
		for a := text.Addr + from; a < text.Addr+40_000; a += step {
			one.Addresses = append(one.Addresses, symbolize.Address{Addr: a, Call: a%3 == 0})
		}
		return []Seen{one}
	}
	some, others := seen(0, 40), seen(20, 40)
	resolve := func(s *Store, seen []Seen) {
		if err := s.Resolve(context.Background(), seen); err != nil {
			t.Fatal(err)
		}
	}
	config := Config{Who: credentials.Credentials{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}, Memory: 512 << 20}
	kept, fresh := New(config), New(config)
	resolve(kept, some)
	before := len(kept.of(mod).locations)
	resolve(kept, others)
	resolve(fresh, others)
	got, want := written(t, kept, others), written(t, fresh, others)
	if !slices.Equal(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("%s\nis, looked up by itself,\n%s", got[i], want[i])
			}
		}
		t.Fatalf("%d names, %d looked up by themselves", len(got), len(want))
	}
	if asked := len(kept.of(mod).locations) - before; asked == 0 || 2*asked > len(others[0].Addresses) {
		t.Errorf("%d of %d addresses were looked up", asked, len(others[0].Addresses))
	}
}

// written lists the locations that a store writes, with what they refer to.
func written(t *testing.T, s *Store, seen []Seen) []string {
	t.Helper()
	bindings, blocks, spans := map[uint32]string{}, map[uint32]string{}, map[uint32]string{}
	var out []string
	err := s.Write(seen, func(e eventlog.Event) error {
		switch e := e.(type) {
		case *eventlog.Binding:
			bindings[e.ID] = e.Package + " " + e.Module + "." + e.Name
		case *eventlog.Span:
			spans[e.ID] = fmt.Sprint(e.Line, e.Col, e.EndLine, e.EndCol, bindings[e.Binding])
		case *eventlog.Block:
			text := fmt.Sprint(e.Module, e.Lo, e.Hi, bindings[e.Binding])
			for _, c := range e.Causes {
				text += " " + spans[c.Span]
			}
			blocks[e.ID] = text
		case *eventlog.Locations:
			for _, l := range e.Locations {
				out = append(out, fmt.Sprintf("%#x is %s + %d, %v, %v, in %s", l.Addr, bindings[l.Binding], l.Offset, l.Category, l.Quality, blocks[l.Block]))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A file that has another's build id has names of its own.
func TestBuildIDDoesNotMakeFilesTheSame(t *testing.T) {
	exe := testprog.Build(t, "spin31", testprog.Options{})
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "impostor")
	// Names are found in sources, too.
	lies := bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("three"), []byte("liars")), []byte("Main.hs"), []byte("Liar.hs"))
	if err := os.WriteFile(other, lies, 0o755); err != nil {
		t.Fatal(err)
	}
	store := New(Config{Who: credentials.Credentials{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}, Memory: 512 << 20})
	for i, path := range []string{other, exe} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		file, err := elffile.Open(f, int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		mod := &process.Module{ID: uint32(i + 1), Path: path, File: f, Binary: binary.IdentifyFile(file)}
		if len(mod.Binary.BuildID) == 0 {
			t.Fatal("the program has no build id")
		}
		text := file.Section(".text")
		one := Seen{Module: mod, Reader: credentials.Credentials{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}}
		for a := text.Addr; a < text.Addr+40_000; a += 16 {
			one.Addresses = append(one.Addresses, symbolize.Address{Addr: a})
		}
		if err := store.Resolve(context.Background(), []Seen{one}); err != nil {
			t.Fatal(err)
		}
		names := strings.Join(written(t, store, []Seen{one}), "\n")
		if strings.Contains(names, "Main.liars") != (path == other) || strings.Contains(names, "Main.three") != (path == exe) {
			t.Errorf("%s: Main.three %v, Main.liars %v", path, strings.Contains(names, "Main.three"), strings.Contains(names, "Main.liars"))
		}
	}
}
