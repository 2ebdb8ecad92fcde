package elffile

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ccagent/internal/testprog"

	"github.com/google/go-cmp/cmp"
)

func openFile(t *testing.T, path string) *File {
	t.Helper()
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	st, err := r.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(r, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestAgainstDebugELF compares headers, symbols and needed libraries with Go's
// own reader, on an executable and on a shared library.
func TestAgainstDebugELF(t *testing.T) {
	exe := testprog.Build(t, "rev", testprog.Options{})
	for _, path := range []string{exe, "/proc/self/exe"} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f := openFile(t, path)
			want, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer want.Close()
			if f.Type != want.Type || f.Machine != want.Machine || len(f.Sections) != len(want.Sections) || len(f.Segments) != len(want.Progs) {
				t.Fatalf("headers differ: %v %v, %d sections, %d segments", f.Type, f.Machine, len(f.Sections), len(f.Segments))
			}
			for i, s := range want.Sections {
				got := f.Sections[i]
				if got.Name != s.Name || got.Addr != s.Addr || got.Offset != s.Offset || got.Size != s.FileSize && s.Type != elf.SHT_NOBITS || got.Flags != s.Flags {
					t.Errorf("section %d is %+v, want %+v", i, got, s.SectionHeader)
				}
			}
			type sym struct {
				Name       string
				Addr, Size uint64
			}
			var ours, theirs []sym
			got, err := f.Symbols(64 << 20)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range got {
				ours = append(ours, sym{s.Name, s.Addr, s.Size})
			}
			all, err := want.Symbols()
			if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
				t.Fatal(err)
			}
			for _, s := range all {
				if k := elf.ST_TYPE(s.Info); s.Section != elf.SHN_UNDEF && k != elf.STT_FILE && k != elf.STT_SECTION && s.Name != "" {
					theirs = append(theirs, sym{s.Name, s.Value, s.Size})
				}
			}
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Errorf("symbols differ (-debug/elf +ours):\n%.2000s", diff)
			}
			libs, err := want.ImportedLibraries()
			if err != nil && f.Dynamic().Present {
				t.Fatal(err)
			}
			if diff := cmp.Diff(libs, f.Dynamic().Needed); diff != "" && len(libs)+len(f.Dynamic().Needed) > 0 {
				t.Errorf("needed libraries differ:\n%s", diff)
			}
		})
	}
}

// TestCompressed reads sections that objcopy compressed, each way it knows.
func TestCompressed(t *testing.T) {
	objcopy := testprog.NeedTool(t, "objcopy", "binutils")
	exe := testprog.Build(t, "rev", testprog.Options{})
	plain := openFile(t, exe)
	want, err := plain.Data(plain.DebugSection(".debug_info"), 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"zlib-gnu", "zlib-gabi", "zstd"} {
		t.Run(how, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "prog")
			if msg, err := exec.Command(objcopy, "--compress-debug-sections="+how, exe, out).CombinedOutput(); err != nil {
				testprog.Skip(t, &testprog.UnsupportedError{Need: "an objcopy that compresses by " + how, Hint: string(bytes.TrimSpace(msg))})
			}
			f := openFile(t, out)
			s := f.DebugSection(".debug_info")
			if s == nil || !s.Compressed() {
				t.Fatalf("not compressed: %+v", s)
			}
			got, err := f.Data(s, 64<<20)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, %v; want %d", len(got), err, len(want))
			}
			if _, err := f.Data(s, uint64(len(want))-1); !errors.Is(err, ErrTooLarge) {
				t.Errorf("beyond the limit: %v", err)
			}
		})
	}
}

// bomb is an ELF file whose one section declares more than it holds.
func bomb(declared uint64, content []byte) []byte {
	le := binary.LittleEndian
	b := make([]byte, 64)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], uint16(elf.ET_EXEC))
	le.PutUint16(b[18:], uint16(elf.EM_X86_64))
	body := make([]byte, 24)
	le.PutUint32(body, uint32(elf.COMPRESS_ZLIB))
	le.PutUint64(body[8:], declared)
	body = append(body, content...)
	names := []byte("\x00.debug_info\x00.names\x00")
	off := uint64(len(b))
	b = append(append(b, body...), names...)
	le.PutUint64(b[40:], uint64(len(b)))
	le.PutUint16(b[58:], 64)
	le.PutUint16(b[60:], 3)
	le.PutUint16(b[62:], 2)
	sec := func(name uint32, kind elf.SectionType, flags elf.SectionFlag, off, size uint64) {
		h := make([]byte, 64)
		le.PutUint32(h, name)
		le.PutUint32(h[4:], uint32(kind))
		le.PutUint64(h[8:], uint64(flags))
		le.PutUint64(h[24:], off)
		le.PutUint64(h[32:], size)
		b = append(b, h...)
	}
	sec(0, elf.SHT_NULL, 0, 0, 0)
	sec(1, elf.SHT_PROGBITS, elf.SHF_COMPRESSED, off, uint64(len(body)))
	sec(13, elf.SHT_STRTAB, 0, off+uint64(len(body)), uint64(len(names)))
	return b
}

// A compressed section is not unpacked beyond the caller's limit, whatever size it claims.
func TestDecompressionBomb(t *testing.T) {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	if _, err := io.CopyN(w, zeros{}, 64<<20); err != nil {
		t.Fatal(err)
	}
	w.Close()
	for _, c := range []struct {
		declared uint64
		want     string
	}{{1 << 60, "limit"}, {1 << 10, "ok"}, {65 << 20, "decompresses to"}} {
		b := bomb(c.declared, z.Bytes())
		f, err := Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		data, err := f.Data(f.DebugSection(".debug_info"), 128<<20)
		switch {
		case c.want == "ok" && (err != nil || len(data) != 1<<10):
			t.Errorf("declared %d: %d bytes, %v", c.declared, len(data), err)
		case c.want != "ok" && err == nil:
			t.Errorf("declared %d: no error", c.declared)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Files that are not ELF are distinguished from ELF files that are malformed.
func TestOpenRefuses(t *testing.T) {
	if _, err := Open(bytes.NewReader([]byte("#!/bin/sh\n")), 10); !errors.Is(err, ErrNotELF) {
		t.Errorf("a script: %v", err)
	}
	if _, err := Open(bytes.NewReader(nil), 0); !errors.Is(err, ErrNotELF) {
		t.Errorf("an empty file: %v", err)
	}
	b := bomb(1, nil)
	binary.LittleEndian.PutUint16(b[60:], 0xfff0)
	var bad *FormatError
	if _, err := Open(bytes.NewReader(b), int64(len(b))); !errors.As(err, &bad) {
		t.Errorf("sections beyond the file: %v", err)
	}
	b[elf.EI_CLASS] = byte(elf.ELFCLASS32)
	var kind *UnsupportedError
	if _, err := Open(bytes.NewReader(b), int64(len(b))); !errors.As(err, &kind) {
		t.Errorf("a 32-bit file: %v", err)
	}
}

// Scan sees a pattern exactly once, also where it lies across two chunks.
func TestScan(t *testing.T) {
	data := bytes.Repeat([]byte("x"), 3<<20)
	for _, at := range []int{0, 1<<20 - 3, 1 << 20, 2<<20 + 1, 3<<20 - 6} {
		b := bytes.Clone(data)
		copy(b[at:], "needle")
		f := &File{r: bytes.NewReader(b), size: uint64(len(b))}
		found := 0
		if err := f.Scan(0, uint64(len(b)), 1<<30, 5, func(chunk []byte) bool {
			found += bytes.Count(chunk, []byte("needle"))
			return true
		}); err != nil || found != 1 {
			t.Errorf("needle at %d: found %d times, %v", at, found, err)
		}
	}
}

// Any bytes give a file or an error, and no section more than the limit that was asked for.
func FuzzOpen(f *testing.F) {
	f.Add(bomb(8, []byte("xxxx")))
	f.Add([]byte("\x7fELF"))
	if exe, err := os.ReadFile("/bin/true"); err == nil {
		f.Add(exe[:min(len(exe), 4096)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := Open(bytes.NewReader(b), int64(len(b)))
		if (e == nil) == (err == nil) {
			t.Fatalf("Open = %v, %v", e, err)
		}
		if err != nil {
			return
		}
		const limit = 1 << 20
		for i := range e.Sections {
			if data, err := e.Data(&e.Sections[i], limit); err == nil && len(data) > limit {
				t.Fatalf("%d bytes beyond the limit", len(data))
			}
		}
		_, _ = e.Symbols(limit)
		if h, err := e.NameHash(); err == nil && h != nil {
			_, _, _ = h.Find("main")
		}
		if table, err := e.SymbolTable(limit); err == nil {
			for range 2 {
				for i := range table.Len() {
					_, _ = table.Entry(i)
					_ = table.Symbol(i)
				}
				table.EachNamed("a", "n", func(int, string) {})
				_, _ = table.Find("main")
				table.names = "" // each is read when it is asked for
			}
		}
		if known := e.KnownSymbolTable([]FileSymbol{{3, 1}}, limit); known != nil {
			for i := range min(known.Len(), 100) {
				_ = known.Symbol(i)
			}
			known.EachNamed("a", "n", func(int, string) {})
		}
		_, _ = e.Relocations(8, limit)
		_ = e.EachImport(6, limit, func(uint64, string) {})
		e.Dynamic()
		e.BuildID()
		e.DebugLink()
		e.ReadAddr(0x1000, 64)
		e.Executable(0x1000)
		_ = fmt.Sprint(e.Arch())
	})
}
