package dwarfindex

import (
	"bytes"
	"context"
	"testing"
)

// seed is a small unit as GHC 9.0 writes it: a procedure with its block
// outside its range, two notes, and one procedure with a tick parent.
func seed() (info, abbrev, line []byte) {
	abbrev = []byte{
		1, 0x11, 1, 0x03, 0x08, 0x25, 0x08, 0x13, 0x06, 0x1b, 0x08, 0x11, 0x01, 0x12, 0x01, 0x10, 0x06, 0, 0,
		2, 0x2e, 1, 0x03, 0x08, 0x87, 0x40, 0x08, 0x11, 0x01, 0x12, 0x01, 0, 0,
		3, 0x2e, 1, 0x03, 0x08, 0x87, 0x40, 0x08, 0x11, 0x01, 0x12, 0x01, 0xa0, 0x56, 0x10, 0, 0,
		4, 0x0b, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x01, 0, 0,
		5, 0x80, 0xb6, 0x01, 0, 0x80, 0x56, 0x08, 0x81, 0x56, 0x06, 0x82, 0x56, 0x05, 0x83, 0x56, 0x06, 0x84, 0x56, 0x05, 0, 0,
		0,
	}
	b := []byte{0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 8}
	u64 := func(v uint64) {
		for i := range 8 {
			b = append(b, byte(v>>(8*i)))
		}
	}
	u32 := func(v uint32) { b = append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24)) }
	b = append(b, 1)
	b = append(b, "./Main.hs\x00The Glorious Glasgow Haskell Compilation System 9.0.2\x00"...)
	u32(languageHaskell)
	b = append(b, "/src/\x00"...)
	u64(0x1000)
	u64(0x1100)
	u32(0)
	b = append(b, 2)
	b = append(b, "main\x00Main_main_info\x00"...)
	u64(0x1000)
	u64(0x1010)
	blockAt := len(b)
	b = append(b, 4)
	b = append(b, "_c1\x00"...)
	u64(0x1020)
	u64(0x1040)
	for range 2 {
		b = append(b, 5)
		b = append(b, "Main.hs\x00"...)
		u32(3)
		b = append(b, 1, 0)
		u32(4)
		b = append(b, 9, 0)
	}
	b = append(b, 0, 0, 3)
	b = append(b, "main.go\x00s1_info\x00"...)
	u64(0x1050)
	u64(0x1060)
	u32(uint32(blockAt))
	b = append(b, 0, 0)
	n := len(b) - 4
	b[0], b[1], b[2], b[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	line = []byte{
		0, 0, 0, 0, 3, 0, 28, 0, 0, 0, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0,
		'M', 'a', 'i', 'n', '.', 'h', 's', 0, 0, 0, 0, 0,
		5, 1, 0, 9, 2, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x14, 0, 1, 1,
	}
	line[6] = byte(40 - 10)
	line[0] = byte(len(line) - 4)
	return b, abbrev, line
}

// The seed of the fuzz targets is valid: its blocks, notes and positions are read.
func TestSeed(t *testing.T) {
	info, abbrev, line := seed()
	x, err := Build(context.Background(), Sections{Info: bytes.NewReader(info), InfoSize: uint64(len(info)), Abbrev: abbrev, Line: line}, Options{})
	if err != nil || len(x.Problems) > 0 {
		t.Fatal(err, x.Problems)
	}
	if x.Blocks() != 3 || x.Procs() != 2 || x.Spans() != 1 {
		t.Fatalf("%d blocks, %d procedures, %d spans", x.Blocks(), x.Procs(), x.Spans())
	}
	if b := x.Lookup(0x1030); b != 2 {
		t.Errorf("0x1030 is in block %d", b)
	}
	if got := x.Causes(nil, x.Lookup(0x1055)); len(got) != 1 || got[0].Distance != 1 {
		t.Errorf("causes across the tick parent: %v", got)
	}
	if !HasNotes(bytes.NewReader(info), uint64(len(info)), abbrev, 1<<20) {
		t.Error("HasNotes does not see the notes")
	}
	if p := x.Proc(1).Pos; p.Line != 3 || p.Col != 1 || x.File(p.File) != "Main.hs" {
		t.Errorf("main's first block is at %+v", p)
	}
}

// Any bytes give an index whose answers agree with each other.
func FuzzBuild(f *testing.F) {
	info, abbrev, line := seed()
	f.Add(info, abbrev, line)
	f.Add(info[:60], abbrev, line[:20])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0}, []byte{1, 0x11, 0, 0, 0, 0}, []byte{})
	f.Fuzz(func(t *testing.T, info, abbrev, line []byte) {
		s := Sections{Info: bytes.NewReader(info), InfoSize: uint64(len(info)), Abbrev: abbrev, Line: line, Str: line, LineStr: abbrev}
		x, _ := Build(context.Background(), s, Options{Memory: 1 << 20})
		if x == nil {
			t.Fatal("no index")
		}
		HasNotes(bytes.NewReader(info), uint64(len(info)), abbrev, 1<<20)
		NotedUnits(bytes.NewReader(info), uint64(len(info)), abbrev, 1<<20, func(string) bool { return false })
		for i := 1; i <= x.Blocks(); i++ {
			b := x.Block(BlockID(i))
			causes := x.Causes(nil, b.ID)
			x.Enclosing(nil, b.ID)
			for _, c := range causes {
				x.File(x.Span(c.Span).File)
			}
			if got := x.Lookup(b.Lo); b.Live && got == NoBlock {
				t.Fatalf("live block %+v is not found", b)
			} else if got != NoBlock {
				if g := x.Block(got); !g.Live || b.Lo < g.Lo || b.Lo >= g.Hi {
					t.Fatalf("Lookup(%#x) = %+v", b.Lo, g)
				}
			}
		}
		for i := 1; i <= x.Procs(); i++ {
			x.Proc(ProcID(i))
		}
		Places(context.Background(), s, x, []uint64{1, 0x1000, 0x1030})
	})
}

// Any line program gives rows sorted by address.
func FuzzLines(f *testing.F) {
	_, _, line := seed()
	f.Add(line)
	f.Add([]byte{12, 0, 0, 0, 5, 0, 8, 0, 4, 0, 0, 0, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var lt lineTable
		_ = lt.read(b, 0, b, b)
		for i := 1; i < len(lt.rows); i++ {
			if lt.rows[i].addr < lt.rows[i-1].addr {
				t.Fatal("rows are not sorted")
			}
		}
		for _, r := range lt.rows {
			lt.file(r.file)
			lt.covering(r.addr)
		}
	})
}
