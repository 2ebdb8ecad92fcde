package modulecode

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"ccagent/internal/ghc"
	"ccagent/symbolize/elffile"

	"github.com/google/go-cmp/cmp"
)

var some = &Map{[]bound{
	{Module{"main", "Main"}, 0x1000, 0x2000, true},
	{Module{"main", "Other"}, 0x3000, 0x2800, false}, // a mark between two functions, and no more
	{Module{"base", "GHC.Base"}, 0x4000, 0x5000, false},
}}

func TestAt(t *testing.T) {
	main, other, base := some.bounds[0].module, some.bounds[1].module, some.bounds[2].module
	for addr, want := range map[uint64]Home{
		0x0fff: {Lo: 0, Hi: 0x1000, Last: main},
		0x1000: {0x1000, 0x2001, main, main, "main"},
		0x2000: {0x1000, 0x2001, main, main, "main"},
		0x2001: {0x2001, 0x2801, Module{}, other, "main"}, // Main has ended
		0x2801: {0x2801, 0x3000, Module{}, base, ""},      // Other, or what is linked beside it
		0x3000: {0x3000, 0x4000, other, base, ""},
		0x4000: {0x4000, 0x5001, base, base, "base"},
	} {
		if got, ok := some.At(addr); !ok || got != want {
			t.Errorf("%#x: %+v, want %+v", addr, got, want)
		}
	}
	if h, ok := some.At(0x5001); ok {
		t.Errorf("behind the last module: %+v", h)
	}
	if lo, hi := some.Around(0x6000, 0x10, 0x7000); lo != 0x5001 || hi != 0x7000 {
		t.Errorf("behind the last module the same is said from %#x to %#x", lo, hi)
	}
}

func TestModuleOf(t *testing.T) {
	for full, want := range map[string]Module{
		"containers-0.6.4.1:Data.Map.Internal.Bin": {"containers-0.6.4.1", "Data.Map.Internal"},
		"base:GHC.Base.:|":                         {"base", "GHC.Base"},
		"base:Data.Functor.Compose..:.":            {"base", "Data.Functor.Compose"},
		"ghc:GHC.C:ParsedMod":                      {"ghc", "GHC"},
		"main:Main.T'":                             {"main", "Main"},
		"main:Bin":                                 {},
		"GHC.Base.Just":                            {},
		"x y:A.B":                                  {},
		"strange closure type: %d. X.Y":            {},
	} {
		if got, _ := moduleOf(full); got != want {
			t.Errorf("%q: %+v", full, got)
		}
	}
}

// What was written comes back, and whatever is read keeps to the order that searches rely on.
func FuzzDecode(f *testing.F) {
	f.Add(some.Encode())
	f.Add([]byte("1000 900 true main Main\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := Decode(b)
		if m == nil {
			return
		}
		if again := Decode(m.Encode()); again == nil || !cmp.Equal(again.bounds, m.bounds, cmp.AllowUnexported(bound{})) {
			t.Fatalf("%v comes back as %v", m, again)
		}
		m.check(t)
	})
}

// check asks for the places at which answers change.
func (m *Map) check(t *testing.T) {
	t.Helper()
	for _, b := range m.bounds {
		for _, addr := range []uint64{b.since - 1, b.since, b.until, b.until + 1} {
			h, ok := m.At(addr)
			if !ok {
				continue
			}
			if addr < h.Lo || addr >= h.Hi {
				t.Fatalf("%#x is said to lie in %#x to %#x", addr, h.Lo, h.Hi)
			}
			for _, same := range []uint64{h.Lo, h.Hi - 1} {
				if other, _ := m.At(same); other != h {
					t.Fatalf("%#x has %+v, %#x has %+v", addr, h, same, other)
				}
			}
		}
	}
}

// FuzzFind reads executables with any code at 0x10000 and any data at 0x20000.
func FuzzFind(f *testing.F) {
	f.Add([]byte{}, []byte{}, false)
	code, data := twoModules()
	f.Add(code, data, false)
	f.Add(code, data, true)
	f.Fuzz(func(t *testing.T, code, data []byte, profiled bool) {
		m, err := Find(t.Context(), crafted(code, data), profiled)
		if err == nil {
			m.check(t)
		}
	})
}

// The least that is found: two modules of two functions each, and a mark between these.
func TestFindCrafted(t *testing.T) {
	code, data := twoModules()
	m, err := Find(t.Context(), crafted(code, data), false)
	if err != nil {
		t.Fatal(err)
	}
	a, b := Module{"main", "A"}, Module{"main", "B"}
	for addr, want := range map[uint64]Home{
		0x10100: {0, 0x10101, Module{}, a, ""},
		0x10120: {0x10101, 0x10140, Module{}, b, ""},
		0x10140: {0x10140, 0x10201, a, b, "main"},
	} {
		if h, _ := m.At(addr); h != want {
			t.Errorf("%#x: %+v, want %+v", addr, h, want)
		}
	}
	// Where the data have not the order of the code, nothing is said.
	binary.LittleEndian.PutUint64(data, 0x10240)
	binary.LittleEndian.PutUint64(data[72:], 0x10100)
	if m, err := Find(t.Context(), crafted(code, data), false); err != nil || len(m.bounds) > 0 {
		t.Errorf("of code in another order: %+v, %v", m, err)
	}
}

// twoModules makes code and data of two modules, A and B.
func twoModules() (code, data []byte) {
	le := binary.LittleEndian
	code = make([]byte, 0x900)
	for _, info := range []int{0x100, 0x140, 0x200, 0x240} {
		le.PutUint32(code[info-ghc.InfoType:], uint32(ghc.FunStatic))
	}
	const module, names = 0x300, 0x800
	le.PutUint32(code[module-ghc.InfoLayout:], 2)
	le.PutUint32(code[module-ghc.InfoType:], uint32(ghc.Constr20))
	le.PutUint32(code[module-ghc.ConstrDesc:], names-module)
	copy(code[names:], "ghc-prim:GHC.Types.Module\x00")
	copy(code[names+0x40:], "main\x00A\x00B\x00")
	const trMain, trA, trB = dataAt + 80, dataAt + 96, dataAt + 112
	for _, w := range []uint64{
		0x10100, codeAt + module, trMain + 1, trA + 1, 0x10140, // A: a function, its name, a function
		0x10200, codeAt + module, trMain + 1, trB + 1, 0x10240, // B, likewise
		0, codeAt + names + 0x40, 0, codeAt + names + 0x45, 0, codeAt + names + 0x47, // the names
	} {
		data = le.AppendUint64(data, w)
	}
	return code, data
}

const codeAt, dataAt = 0x10000, 0x20000

// crafted makes an executable.
func crafted(code, data []byte) *elffile.File {
	const header, entry = 64, 56
	le := binary.LittleEndian
	b := make([]byte, header+2*entry)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], uint16(elf.ET_EXEC))
	le.PutUint16(b[18:], uint16(elf.EM_X86_64))
	le.PutUint64(b[32:], header)
	le.PutUint16(b[54:], entry)
	le.PutUint16(b[56:], 2)
	segment := func(at int, flags elf.ProgFlag, addr uint64, content []byte) {
		le.PutUint32(b[at:], uint32(elf.PT_LOAD))
		le.PutUint32(b[at+4:], uint32(flags))
		le.PutUint64(b[at+8:], uint64(len(b)))
		le.PutUint64(b[at+16:], addr)
		le.PutUint64(b[at+32:], uint64(len(content)))
		le.PutUint64(b[at+40:], uint64(len(content)))
		b = append(b, content...)
	}
	segment(header, elf.PF_R|elf.PF_X, codeAt, code)
	segment(header+entry, elf.PF_R|elf.PF_W, dataAt, data)
	f, err := elffile.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		panic(err)
	}
	return f
}
