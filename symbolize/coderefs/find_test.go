package coderefs

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"testing"

	"ccagent/internal/testprog"
	"ccagent/symbolize/elffile"

	"github.com/google/go-cmp/cmp"
)

// A reference is found where an instruction or a static reference table has one, and
// nowhere else.
func TestScan(t *testing.T) {
	const at, target, closure = 0x401000, 0x402008, 0x4d43e0
	rel := func(off int) []byte {
		return binary.LittleEndian.AppendUint32(nil, uint32(target-(at+off+4)))
	}
	abs := func(a uint32) []byte { return binary.LittleEndian.AppendUint32(nil, a) }
	for _, c := range []struct {
		name string
		code []byte
		want bool
	}{
		{"jmp", append([]byte{0xe9}, rel(1)...), true},
		{"call", append([]byte{0xe8}, rel(1)...), true},
		{"jge", append([]byte{0x0f, 0x8d}, rel(2)...), true},
		{"lea rip-relative", append([]byte{0x48, 0x8d, 0x05}, rel(3)...), true},
		{"mov to register", append([]byte{0xbb}, abs(target)...), true},
		{"mov to heap", append([]byte{0x49, 0xc7, 0x44, 0x24, 0xf8}, abs(target)...), true},
		{"tagged closure", append([]byte{0xbb}, abs(closure+2)...), true},
		{"static reference table", append([]byte{1, 2, 3, 4}, rel(4)...), true},
		{"no instruction", append([]byte{1, 2, 3}, rel(3)...), false},
		{"absolute after another instruction", append([]byte{0x90, 0x90}, abs(target)...), false},
		{"one byte off", append([]byte{0xe9}, abs(target-at-4)...), false},
		{"empty field", []byte{0xe9, 0, 0, 0, 0}, false},
		{"cut off", append([]byte{0xe9}, rel(1)[:3]...), false},
	} {
		var direct, closures lookup
		direct.add(target, 7)
		closures.add(closure, 7)
		var r Refs
		scan(c.code, at, 0, search{&direct, &closures, true}, &r)
		var want []Ref
		if c.want {
			want = []Ref{{at + uint64(len(c.code)) - 4, 7}}
		}
		if diff := cmp.Diff(want, r.Code); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

// A reference is found once, wherever the pieces that are read begin.
func TestFindIsIndependentOfPieces(t *testing.T) {
	f := open(t, testprog.Build(t, "fac", testprog.Options{}))
	text := f.Section(".text")
	code, err := f.Data(text, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	// The targets of all jumps, as they are decoded from every byte.
	var entries []uint64
	for i := 0; i+5 <= len(code); i++ {
		to := text.Addr + uint64(i+5) + uint64(int64(int32(binary.LittleEndian.Uint32(code[i+1:]))))
		if code[i] == 0xe9 && to%8 == 0 && to >= text.Addr && to < text.Addr+text.Size && len(entries) < 5000 {
			entries = append(entries, to)
		}
	}
	got, err := Find(context.Background(), f, entries)
	if err != nil {
		t.Fatal(err)
	}
	var want Refs
	var direct, closures lookup
	for i, e := range entries {
		direct.add(e, i)
	}
	d, err := dataWords(context.Background(), f)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range d.of(&direct) {
		closures.add(w.at, w.target)
	}
	for at := range code {
		scan(code[max(0, at-opcode):min(len(code), at+4)], text.Addr+uint64(max(0, at-opcode)), min(at, opcode), search{&direct, &closures, true}, &want)
	}
	inText := got.Code[:0:0]
	for _, r := range got.Code {
		if r.From >= text.Addr && r.From < text.Addr+text.Size {
			inText = append(inText, r)
		}
	}
	if len(want.Code) < 100 {
		t.Fatalf("only %d references to compare", len(want.Code))
	}
	if diff := cmp.Diff(want.Code, inText); diff != "" {
		t.Error(diff)
	}
}

func open(tb testing.TB, path string) *elffile.File {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	f, err := elffile.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// References in arbitrary code name targets that were asked for.
func FuzzFind(f *testing.F) {
	f.Add(tinyELF(), uint64(0x400078))
	f.Fuzz(func(t *testing.T, data []byte, entry uint64) {
		e, err := elffile.Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		r, _ := Find(context.Background(), e, []uint64{entry, entry + 8})
		if len(r.Escapes) != 2 {
			t.Fatalf("%d of 2 targets", len(r.Escapes))
		}
		for _, ref := range r.Code {
			if ref.Target < 0 || ref.Target > 1 {
				t.Fatalf("a reference to target %d", ref.Target)
			}
		}
	})
}

// tinyELF is an executable of one segment whose only instruction jumps to
// itself.
func tinyELF() []byte {
	b := make([]byte, 64+56)
	copy(b, "\x7fELF\x02\x01\x01")
	le := binary.LittleEndian
	le.PutUint16(b[16:], 2)
	le.PutUint16(b[18:], 62)
	le.PutUint64(b[32:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 1)
	le.PutUint32(b[64:], 1)
	le.PutUint32(b[68:], 7) // readable, writable, executable
	le.PutUint64(b[72:], 0x78)
	le.PutUint64(b[80:], 0x400078)
	le.PutUint64(b[96:], 16)
	le.PutUint64(b[104:], 16)
	b = append(b, 0xe9, 0xfb, 0xff, 0xff, 0xff, 0, 0, 0)
	return le.AppendUint64(b, 0x400078)
}
