package cfi

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"testing"

	"ccagent/symbolize/elffile"

	"github.com/go-delve/delve/pkg/dwarf/frame"
	"github.com/go-delve/delve/pkg/dwarf/regnum"
	"github.com/google/go-cmp/cmp"
)

// cRules is what C compilers' common information says on x86-64.
var cRules = []byte{frame.DW_CFA_def_cfa, regnum.AMD64_Rsp, 8, frame.DW_CFA_offset | regnum.AMD64_Rip, 1}

func cFrame(kind Kind, reg uint8, offset int32) Rule {
	r := Rule{Kind: kind, Reg: reg, Offset: offset}
	r.Saved[0] = -1
	return r
}

// A function's rules, in one FDE of 16 bytes at textAddr, at its start and at
// byte 8.
func TestRules(t *testing.T) {
	withSaved := func(r Rule, saved ...int16) Rule {
		copy(r.Saved[1:], saved)
		return r
	}
	drap := cFrame(KindFrameDeref, regnum.AMD64_Rbp, -16)
	drap.Flags = FlagFromReg<<1 | FlagFromReg<<2
	drap.Saved[1], drap.Saved[2] = 0, -3
	signal := Rule{Kind: KindFrameDeref, Reg: regnum.AMD64_Rsp, Offset: 160, Flags: FlagSignal | FlagFromReg<<0 | FlagFromReg<<1}
	signal.Saved[0], signal.Saved[1] = 21, 15

	for _, c := range []struct {
		name         string
		augmentation string
		code         []byte
		start, later Rule
	}{
		{
			"push", "z", []byte{frame.DW_CFA_advance_loc | 8, frame.DW_CFA_def_cfa_offset, 16, frame.DW_CFA_offset | regnum.AMD64_Rbp, 2},
			cFrame(KindFrame, regnum.AMD64_Rsp, 8), withSaved(cFrame(KindFrame, regnum.AMD64_Rsp, 16), -2),
		},
		{
			"frame pointer", "z", []byte{frame.DW_CFA_advance_loc1, 8, frame.DW_CFA_def_cfa_register, regnum.AMD64_Rbp, frame.DW_CFA_offset | regnum.AMD64_Rbx, 5, frame.DW_CFA_offset_extended, regnum.AMD64_R13, 6},
			cFrame(KindFrame, regnum.AMD64_Rsp, 8), withSaved(cFrame(KindFrame, regnum.AMD64_Rbp, 8), 0, -5, 0, -6),
		},
		{
			"restored", "z", []byte{frame.DW_CFA_offset | regnum.AMD64_R12, 2, frame.DW_CFA_remember_state, frame.DW_CFA_advance_loc | 4, frame.DW_CFA_restore | regnum.AMD64_R12, frame.DW_CFA_def_cfa_offset, 24, frame.DW_CFA_advance_loc | 4, frame.DW_CFA_restore_state},
			withSaved(cFrame(KindFrame, regnum.AMD64_Rsp, 8), 0, 0, -2), withSaved(cFrame(KindFrame, regnum.AMD64_Rsp, 8), 0, 0, -2),
		},
		{
			"undefined return address", "z", []byte{frame.DW_CFA_undefined, regnum.AMD64_Rip},
			Rule{Kind: KindRoot}, Rule{Kind: KindRoot},
		},
		{
			"procedure linkage table", "z", []byte{frame.DW_CFA_def_cfa_expression, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22},
			cFrame(KindPLT, regnum.AMD64_Rsp, 11), cFrame(KindPLT, regnum.AMD64_Rsp, 11),
		},
		{
			// rbp at rbp+0, rbx at rbp-24, CFA at *(rbp-16)
			"realigned stack", "z", []byte{frame.DW_CFA_advance_loc | 8, frame.DW_CFA_def_cfa_expression, 3, 0x76, 0x70, 0x06,
				frame.DW_CFA_expression, regnum.AMD64_Rbp, 2, 0x76, 0, frame.DW_CFA_expression, regnum.AMD64_Rbx, 2, 0x76, 0x68},
			cFrame(KindFrame, regnum.AMD64_Rsp, 8), drap,
		},
		{
			"signal", "zS", []byte{frame.DW_CFA_def_cfa_expression, 4, 0x77, 0xa0, 1, 0x06,
				frame.DW_CFA_expression, regnum.AMD64_Rip, 3, 0x77, 0xa8, 1, frame.DW_CFA_expression, regnum.AMD64_Rbp, 3, 0x77, 0xf8, 0},
			signal, signal,
		},
		{
			// What StgRun's says: everything from rsp, rsp itself further up.
			"stack pointer apart from the CFA", "z", []byte{frame.DW_CFA_def_cfa, regnum.AMD64_Rsp, 0, frame.DW_CFA_offset_extended_sf, regnum.AMD64_Rbx, 0x70, frame.DW_CFA_offset_extended_sf, regnum.AMD64_Rip, 0x6f,
				frame.DW_CFA_val_expression, regnum.AMD64_Rsp, 3, 0x77, 0x90, 1},
			withSaved(cFrame(KindFrame, regnum.AMD64_Rsp, 144), 0, -2), withSaved(cFrame(KindFrame, regnum.AMD64_Rsp, 144), 0, -2),
		},
		{
			"return address in a register", "z", []byte{frame.DW_CFA_advance_loc | 8, frame.DW_CFA_register, regnum.AMD64_Rip, 5},
			cFrame(KindFrame, regnum.AMD64_Rsp, 8), Rule{Kind: KindUnknown},
		},
		{
			"register in a register", "z", []byte{frame.DW_CFA_register, regnum.AMD64_Rbp, 5},
			withSaved(cFrame(KindFrame, regnum.AMD64_Rsp, 8), Lost), withSaved(cFrame(KindFrame, regnum.AMD64_Rsp, 8), Lost),
		},
		{
			"unknown expression", "z", []byte{frame.DW_CFA_def_cfa_expression, 3, 0x77, 0, 0x1f}, // neg
			Rule{Kind: KindUnknown}, Rule{Kind: KindUnknown},
		},
		{
			"outgoing arguments", "z", []byte{frame.DW_CFA_GNU_args_size, 16, frame.DW_CFA_nop},
			cFrame(KindFrame, regnum.AMD64_Rsp, 8), cFrame(KindFrame, regnum.AMD64_Rsp, 8),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := frames{eh: true}
			cie := f.cie(c.augmentation, -8, regnum.AMD64_Rip, cRules...)
			f.fde(cie, true, textAddr, 16, c.code...)
			m := image{text: make([]byte, 64), eh: f.b}
			table, err := m.compile(DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			if table.Stats.Malformed != 0 {
				t.Fatal(table.Stats.FirstFault)
			}
			for _, at := range []struct {
				addr uint64
				want Rule
			}{{textAddr, c.start}, {textAddr + 8, c.later}, {textAddr + 15, c.later}, {textAddr + 16, Rule{}}, {textAddr - 1, Rule{}}} {
				if got := table.Lookup(at.addr); got != at.want {
					t.Errorf("at %#x: %v, want %v", at.addr, got, at.want)
				}
			}
		})
	}
}

// On arm64 the return address starts in the link register and may be signed.
func TestArm64(t *testing.T) {
	f := frames{eh: true}
	cie := f.cie("z", -8, regnum.ARM64_LR, frame.DW_CFA_def_cfa, regnum.ARM64_SP, 0)
	f.fde(cie, true, textAddr, 16, opNegateRAState, frame.DW_CFA_advance_loc|4, frame.DW_CFA_def_cfa_offset, 48, frame.DW_CFA_offset|regnum.ARM64_BP, 6, frame.DW_CFA_offset|regnum.ARM64_LR, 5, frame.DW_CFA_offset|20, 1)
	m := image{machine: elf.EM_AARCH64, text: make([]byte, 64), eh: f.b}
	table, err := m.compile(DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := table.Lookup(textAddr), (Rule{Kind: KindFrame, Reg: regnum.ARM64_SP, Flags: FlagRASigned}); got != want {
		t.Errorf("at entry: %v, want %v", got, want)
	}
	want := Rule{Kind: KindFrame, Reg: regnum.ARM64_SP, Offset: 48, Flags: FlagRASigned}
	want.Saved[0], want.Saved[1], want.Saved[3] = -5, -6, -1
	if got := table.Lookup(textAddr + 4); got != want {
		t.Errorf("in the body: %v, want %v", got, want)
	}
}

// ghcCommon is GHC's common information.
func ghcCommon(f *frames) int {
	return f.cie("", -8, regnum.AMD64_Rip, frame.DW_CFA_def_cfa, regnum.AMD64_Rbp, 0, frame.DW_CFA_offset|regnum.AMD64_Rip, 0, frame.DW_CFA_same_value, regnum.AMD64_Rsp, frame.DW_CFA_val_offset, regnum.AMD64_Rbp, 0)
}

func haskell(offset int32) Rule {
	return Rule{Kind: KindHaskell, Reg: regnum.AMD64_Rbp, Offset: offset}
}

// The quirks of GHC's frame descriptions; see doc.go.
func TestHaskellDescriptions(t *testing.T) {
	at := func(off uint64, code ...byte) []byte { return append(setLoc(textAddr+off), code...) }
	rspMoved := []byte{frame.DW_CFA_val_expression, regnum.AMD64_Rsp, 2, 0x77, 8}
	f := frames{}
	cie := ghcCommon(&f)
	// GHC 9.0: the range covers the first block alone.
	f.fde(cie, false, textAddr+0x1f, 8, join(
		at(0x2f, frame.DW_CFA_def_cfa_offset, 16),
		at(0x40, frame.DW_CFA_def_cfa_offset_sf, 24), // not a multiple of the alignment
		// A C call: rows about rsp alone put the CFA back to 0.
		at(0x50, append([]byte{frame.DW_CFA_def_cfa_offset, 0}, rspMoved...)...),
		at(0x58, frame.DW_CFA_same_value, regnum.AMD64_Rsp),
		at(0x60, frame.DW_CFA_def_cfa_offset, 32),
		at(0x68, frame.DW_CFA_def_cfa_expression, 3, 0x76, 8, 0x06),
	)...)
	f.fde(cie, false, textAddr+0x9f, 4)
	m := image{text: make([]byte, 0x200), dbg: f.b}
	table, err := m.compile(DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if s := table.Stats; s.Haskell != 2 || s.Repaired != 1 || s.Malformed != 0 {
		t.Errorf("stats %+v", s)
	}
	deref := Rule{Kind: KindHaskellDeref, Reg: regnum.AMD64_Rbp, Offset: 8}
	for _, c := range []struct {
		off  uint64
		want Rule
	}{
		{0x1e, Rule{}}, {0x1f, haskell(0)}, {0x2e, haskell(0)}, {0x2f, haskell(16)}, {0x40, haskell(24)},
		{0x50, haskell(24)}, {0x58, haskell(24)}, {0x60, haskell(32)}, {0x68, deref}, {0x9e, deref}, {0x9f, haskell(0)},
		{0x1ff, haskell(0)}, {0x200, Rule{}},
	} {
		if got := table.Lookup(textAddr + c.off); got != c.want {
			t.Errorf("at %#x: %v, want %v", c.off, got, c.want)
		}
	}
}

// GHC's frame descriptions name the first common information of the section, also where that is an object's of C code; its own, which
// stands before them, holds. C code's descriptions behind that keep theirs.
func TestHaskellBehindC(t *testing.T) {
	f := frames{}
	c := f.cie("", -8, regnum.AMD64_Rip, cRules...)
	f.fde(c, false, textAddr, 0x10)
	ghcCommon(&f)
	f.fde(0, false, textAddr+0x1f, 8)
	c = f.cie("", -8, regnum.AMD64_Rip, frame.DW_CFA_def_cfa, regnum.AMD64_Rsp, 16, frame.DW_CFA_offset|regnum.AMD64_Rip, 1)
	f.fde(c, false, textAddr+0x40, 0x10)
	m := image{text: make([]byte, 0x200), dbg: f.b}
	table, err := m.compile(DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	for off, want := range map[uint64]Rule{0: cFrame(KindFrame, regnum.AMD64_Rsp, 8), 0x20: haskell(0), 0x40: cFrame(KindFrame, regnum.AMD64_Rsp, 16)} {
		if got := table.Lookup(textAddr + off); got != want {
			t.Errorf("at %#x: %v, want %v", off, got, want)
		}
	}
}

// Without section headers .eh_frame is found by way of its header's segment.
func TestFrameHeaderSegment(t *testing.T) {
	f := frames{eh: true}
	f.fde(f.cie("z", -8, regnum.AMD64_Rip, cRules...), true, textAddr, 16)
	hdr := []byte{1, pePCRel | peS4, peOmit, peOmit}
	distance := int32(frameAddr - (hdrAddr + 4))
	hdr = binary.LittleEndian.AppendUint32(hdr, uint32(distance))
	hdr = append(hdr, make([]byte, 8)...)
	m := image{text: make([]byte, 64), eh: f.b, hdr: hdr, noSections: true}
	table, err := m.compile(DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if got := table.Lookup(textAddr); got != cFrame(KindFrame, regnum.AMD64_Rsp, 8) {
		t.Errorf("rule %v", got)
	}
}

// A malformed entry is left out, and does not harm the entries around it.
func TestMalformed(t *testing.T) {
	good := func(f *frames) { f.fde(f.cie("z", -8, regnum.AMD64_Rip, cRules...), true, textAddr+32, 16) }
	for _, c := range []struct {
		name  string
		write func(f *frames)
	}{
		{"instruction", func(f *frames) { f.fde(f.cie("z", -8, regnum.AMD64_Rip, cRules...), true, textAddr, 16, 0x3f) }},
		{"operand", func(f *frames) {
			f.fde(f.cie("z", -8, regnum.AMD64_Rip, cRules...), true, textAddr, 16, frame.DW_CFA_nop, frame.DW_CFA_nop, frame.DW_CFA_nop, frame.DW_CFA_nop, frame.DW_CFA_nop, frame.DW_CFA_nop, frame.DW_CFA_advance_loc4)
		}},
		{"restored without a state", func(f *frames) {
			f.fde(f.cie("z", -8, regnum.AMD64_Rip, cRules...), true, textAddr, 16, frame.DW_CFA_restore_state)
		}},
		{"location going back", func(f *frames) {
			f.fde(f.cie("z", -8, regnum.AMD64_Rip, cRules...), true, textAddr, 16, append([]byte{frame.DW_CFA_advance_loc | 2}, setLoc(textAddr)...)...)
		}},
		{"no common information", func(f *frames) { f.fde(4, true, textAddr, 16) }},
		{"augmentation", func(f *frames) { f.fde(f.cie("zX", -8, regnum.AMD64_Rip, cRules...), true, textAddr, 16) }},
		{"return address column", func(f *frames) { f.fde(f.cie("z", -8, regnum.AMD64_Rbx, cRules...), true, textAddr, 16) }},
		{"length", func(f *frames) { f.fde(f.cie("zP", -8, regnum.AMD64_Rip, 0xff), true, textAddr, 16) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := frames{eh: true}
			good(&f)
			c.write(&f)
			m := image{text: make([]byte, 64), eh: f.b}
			table, err := m.compile(DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			if table.Stats.Malformed == 0 || table.Stats.FirstFault == nil {
				t.Error("nothing reported")
			}
			if got := table.Lookup(textAddr); got != (Rule{}) {
				t.Errorf("malformed entry gave %v", got)
			}
			if got := table.Lookup(textAddr + 32); got != cFrame(KindFrame, regnum.AMD64_Rsp, 8) {
				t.Errorf("well-formed entry gave %v", got)
			}
		})
	}
}

// Limits that are exceeded and a lack of frame information have different errors.
func TestErrors(t *testing.T) {
	f := frames{eh: true}
	cie := f.cie("z", -8, regnum.AMD64_Rip, cRules...)
	for i := range uint64(8) {
		f.fde(cie, true, textAddr+64*i, 8)
	}
	m := image{text: make([]byte, 1024), eh: f.b}
	if _, err := m.compile(Limits{Bytes: 8}); !errors.Is(err, elffile.ErrTooLarge) {
		t.Errorf("beyond the byte limit: %v", err)
	}
	if _, err := m.compile(Limits{Bytes: 1 << 20, Rows: 4}); !errors.Is(err, elffile.ErrTooLarge) {
		t.Errorf("beyond the row limit: %v", err)
	}
	none := image{text: make([]byte, 64)}
	if _, err := none.compile(DefaultLimits); !errors.Is(err, ErrNone) {
		t.Errorf("without frame information: %v", err)
	}
	var unsupported *elffile.UnsupportedError
	other := image{machine: elf.EM_PPC64, text: make([]byte, 64)}
	if _, err := other.compile(DefaultLimits); !errors.As(err, &unsupported) {
		t.Errorf("for PowerPC: %v", err)
	}
}

// Rows and rules have the bytes that the walker in the kernel reads.
func TestEncoding(t *testing.T) {
	r := Rule{Kind: KindFrame, Reg: 7, Flags: 0x8001, Offset: -2}
	r.Saved[0], r.Saved[11] = -1, Lost
	want := []byte{3, 7, 0x01, 0x80, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff}
	want = append(append(want, make([]byte, 20)...), 0x00, 0x80)
	if d := cmp.Diff(want, r.Append(nil)); d != "" || len(want) != RuleSize {
		t.Errorf("rule (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]byte{4, 3, 2, 1, 8, 0, 0, 0}, Row{0x01020304, 8}.Append(nil)); d != "" {
		t.Errorf("row (-want +got):\n%s", d)
	}
}
