package snapshot

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func example() *Snapshot {
	return &Snapshot{
		Arch: X86, GHC: "9.0.2", Threaded: true, Comment: "mid-adjustment of Sp",
		Registers: []uint64{0: 0x4200006000, 4: 0x4200105678, 16: 0x408e6e, 20: 0},
		Text:      [2]Range{{0x400000, 0x4a0000}, {0x7000_0000_0000, 0x8000_0000_0000}},
		Task:      0x51a2b0,
		Memory:    []Segment{{0x408e48, []byte{1, 2, 3}}, {0x4200105678, bytes.Repeat([]byte{7}, 300)}},
		Rows: []Row{
			{Lo: 0x408e97, Hi: 0x408e9f, Haskell: true, CFARegister: 6, CFAOffset: 8},
			{Lo: 0x408ea0, Hi: 0x408eb0, Haskell: true, Deref: true, CFARegister: 6, CFAOffset: -8},
			{Lo: 0x48b5a5, Hi: 0x48b5da, CFARegister: 7, Return: Rule{RuleAt, 16432},
				Saved: []SavedRegister{{3, Rule{RuleAt, 16384}}, {7, Rule{RuleValue, -16440}}}},
		},
		Names: []Name{{0x408e6e, "Main_down_info+0x16"}, {0x408e98, "Main_down_info+0x40"}},
	}
}

// A snapshot is the same after being encoded and decoded.
func TestRoundTrip(t *testing.T) {
	want := example()
	got, err := Decode(want.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("decoded other than encoded:\n%s", d)
	}
	if name := got.Name(0x408e98); name != "Main_down_info+0x40" {
		t.Errorf("name of 0x408e98 = %q", name)
	}
}

// Every truncation of a snapshot is an error, and so are bytes after its end.
func TestDamaged(t *testing.T) {
	data := example().Encode()
	for n := range data {
		if _, err := Decode(data[:n]); err == nil {
			t.Errorf("no error for the first %d of %d bytes", n, len(data))
		}
	}
	if _, err := Decode(append(data, 0)); err == nil {
		t.Error("no error for a byte after the end")
	}
}

// Join merges adjacent and overlapping segments.
func TestJoin(t *testing.T) {
	got := Join([]Segment{{20, []byte{20, 21}}, {10, []byte{10, 11, 12}}, {12, []byte{12, 13}}, {14, []byte{14}}, {11, []byte{11}}, {30, nil}})
	want := []Segment{{10, []byte{10, 11, 12, 13, 14}}, {20, []byte{20, 21}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Decoding gives either a snapshot or an error; a decoded snapshot is the same after being
// encoded and decoded again.
func FuzzDecode(f *testing.F) {
	f.Add(example().Encode())
	f.Add([]byte(magic))
	f.Add((&Snapshot{Arch: ARM64, Registers: make([]uint64, 34)}).Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Decode(data)
		if (s == nil) == (err == nil) {
			t.Fatalf("snapshot %v and error %v", s, err)
		}
		if err != nil {
			return
		}
		again, err := Decode(s.Encode())
		if err != nil {
			t.Fatalf("encoded snapshot cannot be read: %v", err)
		}
		if d := cmp.Diff(s, again); d != "" {
			t.Fatalf("decoded other than encoded:\n%s", d)
		}
	})
}
