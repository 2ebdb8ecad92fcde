package ipe

import (
	"ccagent/symbolize/sources"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// image is memory from an address on.
type image struct {
	base uint64
	b    []byte
}

func (m *image) Bytes(addr, n uint64) []byte {
	if addr < m.base || addr-m.base >= uint64(len(m.b)) {
		return nil
	}
	off := addr - m.base
	return m.b[off:min(uint64(len(m.b)), off+min(n, uint64(len(m.b))))]
}

func (m *image) Pointer(addr uint64) (uint64, bool) {
	b := m.Bytes(addr, 8)
	if len(b) < 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

func (m *image) put(b []byte) (at uint64) {
	for len(m.b)%8 != 0 {
		m.b = append(m.b, 0)
	}
	at = m.base + uint64(len(m.b))
	m.b = append(m.b, b...)
	return at
}

func u64s(v ...uint64) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

func u32s(v ...uint32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

// stringTable gathers strings and gives their offsets.
type stringTable struct{ b []byte }

func (t *stringTable) add(s string) uint32 {
	at := uint32(len(t.b))
	t.b = append(append(t.b, s...), 0)
	return at
}

var fac = []Entry{
	{Info: 0x401000, Table: "$wfac_info", Closure: 14, Type: "Int# -> Int#", Label: "fac", Module: "Main", File: "Main.hs", Span: sources.Extent{Line: 29, Col: 1, EndLine: 29, EndCol: 29}},
	{Info: 0x401080, Table: "sat_s1_info", Closure: 16, Type: "[Int]", Label: "main.go", Module: "Main", File: "app/Main.hs", Span: sources.Extent{Line: 17, Col: 21, EndLine: 20, EndCol: 42}},
	{Info: 0x401100, Table: "block_c1_info", Closure: 53, Module: "Main"},
}

var printed = []string{"29:1-28", "(17,21)-(20,41)", ""}

func location(i int) string {
	if fac[i].File == "" {
		return ""
	}
	return fac[i].File + ":" + printed[i]
}

// marked is a version of the newest layout.
const marked = "10.0.1"

// build lays entries out as a version does, and gives where the buffers are.
func build(version string, compressed bool) (*image, []Buffer) {
	m := &image{base: 0x500000, b: make([]byte, 64)}
	var t stringTable
	t.add("")
	pack := func(b []byte) []byte {
		if !compressed {
			return b
		}
		w, _ := zstd.NewWriter(nil)
		return w.EncodeAll(b, nil)
	}
	decimals := map[uint32]string{14: "14", 16: "16", 53: "53"}
	cstring := func(s string) uint64 { return m.put(append([]byte(s), 0)) }
	var buffers []Buffer
	var rows []byte
	var infos []uint64
	for i, e := range fac {
		switch version {
		case "9.2.8", "9.4.2":
			b := u64s(e.Info, cstring(e.Table), cstring(decimals[e.Closure]), cstring(e.Type), cstring(e.Label), cstring(e.Module), cstring(location(i)), 0)
			buffers = append(buffers, Buffer{m.put(b), e.Table + "_ipe"})
		case "9.4.8":
			rows = append(append(rows, u64s(e.Info)...), u32s(t.add(e.Table), t.add(decimals[e.Closure]), t.add(e.Type), t.add(e.Label), t.add(e.Module), t.add(location(i)))...)
		case "9.6.7":
			rows = append(append(rows, u64s(e.Info)...), u32s(t.add(e.Table), t.add(decimals[e.Closure]), t.add(e.Type), t.add(e.Label), t.add(e.Module), t.add(e.File), t.add(printed[i]), 0)...)
		case "9.8.4":
			rows = append(rows, u32s(t.add(e.Table), t.add(decimals[e.Closure]), t.add(e.Type), t.add(e.Label), t.add(e.Module), t.add(e.File), t.add(printed[i]), 0)...)
		case "9.10.1":
			rows = append(rows, u32s(t.add(e.Table), t.add(decimals[e.Closure]), t.add(e.Type), t.add(e.Label), t.add(e.File), t.add(printed[i]))...)
		default:
			rows = append(rows, u32s(t.add(e.Table), e.Closure, t.add(e.Type), t.add(e.Label), t.add(e.File), t.add(printed[i]))...)
		}
		infos = append(infos, e.Info)
	}
	if buffers != nil {
		return m, buffers
	}
	unit, module := t.add("main"), t.add("Main")
	var node []byte
	switch version {
	case "9.4.8", "9.6.7":
		node = append(u64s(0, m.put(t.b), uint64(len(fac))), rows...)
	default:
		flag := uint64(0)
		if compressed {
			flag = 1
		}
		node = u64s(0, flag, uint64(len(fac)), m.put(u64s(infos...)), m.put(pack(rows)), uint64(len(rows)), m.put(pack(t.b)), uint64(len(t.b)))
		if version != "9.8.4" {
			node = append(node, u32s(unit, module)...)
		}
		if version == marked {
			mark := u64s(magic)
			node = u64s(0, 0, flag, uint64(len(fac)), m.put(u64s(infos...)), m.put(append(mark, pack(rows)...)), uint64(len(rows)), m.put(append(mark, pack(t.b)...)), uint64(len(t.b)))
			node = append(node, u32s(unit, module)...)
		}
	}
	return m, []Buffer{{m.put(node), "Main_ipe_buf"}}
}

// Every layout of the map, from GHC 9.2 to 10.0, compressed or not, gives the same entries.
func TestLayouts(t *testing.T) {
	for _, c := range []struct {
		version    string
		compressed bool
	}{{"9.2.8", false}, {"9.4.2", false}, {"9.4.8", false}, {"9.6.7", false}, {"9.8.4", false}, {"9.8.4", true}, {"9.10.1", false}, {"9.10.1", true}, {"9.10.3", false}, {"9.10.3", true}, {"9.12.2", true}, {"9.14.1", false}, {marked, false}, {marked, true}} {
		m, buffers := build(c.version, c.compressed)
		got, err := Read(context.Background(), m, buffers, c.version, 1<<20)
		if err != nil {
			t.Errorf("%s: %v", c.version, err)
		}
		var want []Entry
		for _, e := range fac {
			if c.version[:3] == "9.1" || c.version == marked {
				e.Unit = "main"
			}
			want = append(want, e)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, compressed: %v\n%s", c.version, c.compressed, diff)
		}
	}
}

// A damaged or oversized map is reported, and the whole buffers beside it are read.
func TestDamage(t *testing.T) {
	if _, err := Read(context.Background(), &image{}, nil, "9.0.2", 1<<20); !errors.Is(err, ErrVersion) {
		t.Errorf("version 9.0.2: %v", err)
	}
	for _, version := range []string{"9.4.8", "9.6.7", "9.8.4", "9.10.3", marked} {
		m, buffers := build(version, false)
		got, err := Read(context.Background(), m, append(buffers, Buffer{0x10, "away"}), version, 1<<20)
		var format *FormatError
		if !errors.As(err, &format) || format.Buffer.Name != "away" || len(got) != len(fac) {
			t.Errorf("%s: a buffer that is away: %d entries, %v", version, len(got), err)
		}
		if got, err := Read(context.Background(), m, buffers, version, 100); err == nil || len(got) != 0 {
			t.Errorf("%s: over the budget: %d entries, %v", version, len(got), err)
		}
		// Cut off anywhere, it is read in whole, in part without strings, or reported.
		for n := range m.b {
			short := &image{m.base, m.b[:n]}
			got, err := Read(context.Background(), short, buffers, version, 1<<20)
			if err == nil && len(got) != len(fac) {
				t.Fatalf("%s: cut to %d bytes: %d entries and no error", version, n, len(got))
			}
		}
	}
}

// Of a program whose section .ipe was removed nothing is read, and it is said.
func TestRemovedSection(t *testing.T) {
	m, buffers := build(marked, false)
	for i := range m.b[:len(m.b)-8] {
		if binary.LittleEndian.Uint64(m.b[i:]) == magic {
			clear(m.b[i : i+8])
			break
		}
	}
	got, err := Read(context.Background(), m, buffers, marked, 1<<20)
	if len(got) != 0 || err == nil || !strings.Contains(err.Error(), ".ipe was removed") {
		t.Errorf("%d entries, %v", len(got), err)
	}
}

// A frame that unpacks to more than it says costs no more than it says.
func TestBomb(t *testing.T) {
	m := &image{base: 0x500000, b: make([]byte, 8)}
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := m.put(w.EncodeAll(make([]byte, 64<<20), nil))
	node := m.put(append(u64s(0, 1, 2, m.put(u64s(0x401000, 0x401080)), bomb, 48, bomb, 100), u32s(0, 0)...))
	got, err := Read(context.Background(), m, []Buffer{{node, "bomb"}}, "9.10.3", 1<<20)
	if err != nil || len(got) != 2 {
		t.Errorf("%d entries, %v", len(got), err)
	}
	node = m.put(append(u64s(0, 1, 1<<20, m.put(u64s(0x401000)), bomb, 24<<20, bomb, 100), u32s(0, 0)...))
	if got, err := Read(context.Background(), m, []Buffer{{node, "bomb"}}, "9.10.3", 1<<20); err == nil {
		t.Errorf("%d entries within a budget of 1 MB", len(got))
	}
}

// Any bytes give entries in the order of their addresses.
func FuzzRead(f *testing.F) {
	for _, version := range []string{"9.2.8", "9.4.2", "9.4.8", "9.6.7", "9.8.4", "9.10.1", "9.10.3", marked} {
		m, buffers := build(version, version == "9.10.3")
		f.Add(m.b, uint16(buffers[0].Addr-m.base), version)
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint16, version string) {
		m := &image{0x500000, b}
		entries, _ := Read(context.Background(), m, []Buffer{{m.base + uint64(at), "fuzz"}, {m.base, "head"}}, version, 1<<20)
		last := uint64(0)
		for i, e := range entries {
			if i > 0 && e.Info <= last {
				t.Fatalf("entry %d at %#x after %#x", i, e.Info, last)
			}
			last = e.Info
		}
	})
}
