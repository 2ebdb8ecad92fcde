package dwarfindex

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"ccagent/internal/testprog"

	"github.com/google/go-cmp/cmp"
)

// A decoded index is the one that was encoded; one that is cut off anywhere is refused.
func TestEncode(t *testing.T) {
	x, _ := build(t, testprog.Build(t, "example", testprog.Options{}))
	data := x.Encode(nil)
	got, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(x, got, cmp.AllowUnexported(Index{}, proc{}, text{}, block{}, note{}, segments{})); diff != "" {
		t.Errorf("decoded index differs (-want +got):\n%.3000s", diff)
	}
	if again := got.Encode(nil); !bytes.Equal(data, again) {
		t.Error("encoding the decoded index gives other bytes")
	}
	for n := 0; n < len(data); n += 1 + n/50 {
		if _, err := Decode(data[:n]); !errors.Is(err, ErrEncoding) {
			t.Fatalf("cut to %d of %d bytes: %v", n, len(data), err)
		}
	}
	if _, err := Decode(append(bytes.Clone(data), 0)); !errors.Is(err, ErrEncoding) {
		t.Errorf("a byte too many: %v", err)
	}
}

// FuzzDecode uses whatever is accepted in every way an index is used.
func FuzzDecode(f *testing.F) {
	info, abbrev, line := seed()
	x, err := Build(context.Background(), Sections{Info: bytes.NewReader(info), InfoSize: uint64(len(info)), Abbrev: abbrev, Line: line}, Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(x.Encode(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := Decode(data)
		if err != nil {
			if x != nil || !errors.Is(err, ErrEncoding) {
				t.Fatalf("index %v with error %v", x, err)
			}
			return
		}
		var orphans []ProcID
		var refs []Reference
		for i := 1; i <= x.Blocks(); i++ {
			b := x.Block(BlockID(i))
			x.Notes(nil, b.ID)
			for _, c := range x.Causes(nil, b.ID) {
				x.File(x.Span(c.Span).File)
			}
			x.Enclosing(nil, b.ID)
			x.Lookup(b.Lo)
			refs = append(refs, Reference{b.Lo, b.Proc})
		}
		for i := 1; i <= x.Procs(); i++ {
			p := x.Proc(ProcID(i))
			x.Unit(p.Unit)
			x.File(p.Pos.File)
			orphans = append(orphans, p.ID)
		}
		x.Adopt(orphans, refs)
		x.Encode(nil)
	})
}

// BenchmarkDecode reads an index back from the cache's form.
func BenchmarkDecode(b *testing.B) {
	s, f := load(b, benchFile(b))
	x, err := Build(context.Background(), s, Options{Executable: executable(f)})
	if err != nil {
		b.Fatal(err)
	}
	data := x.Encode(nil)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}
