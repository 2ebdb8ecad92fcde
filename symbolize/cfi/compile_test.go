package cfi

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"testing"

	"ccagent/symbolize/elffile"

	"github.com/google/go-cmp/cmp"
)

// cRules is what C compilers' common information says on x86-64.
var cRules = []byte{opDefCFA, amd64RSP, 8, opOffset | amd64RIP, 1}

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
	drap := cFrame(KindFrameDeref, amd64RBP, -16)
	drap.Flags = FlagFromReg<<1 | FlagFromReg<<2
	drap.Saved[1], drap.Saved[2] = 0, -3
	signal := Rule{Kind: KindFrameDeref, Reg: amd64RSP, Offset: 160, Flags: FlagSignal | FlagFromReg<<0 | FlagFromReg<<1}
	signal.Saved[0], signal.Saved[1] = 21, 15

	for _, c := range []struct {
		name         string
		augmentation string
		code         []byte
		start, later Rule
	}{
		{
			"push", "z", []byte{opAdvance | 8, opDefCFAOffset, 16, opOffset | amd64RBP, 2},
			cFrame(KindFrame, amd64RSP, 8), withSaved(cFrame(KindFrame, amd64RSP, 16), -2),
		},
		{
			"frame pointer", "z", []byte{opAdvance1, 8, opDefCFARegister, amd64RBP, opOffset | amd64RBX, 5, opOffsetExtended, amd64R13, 6},
			cFrame(KindFrame, amd64RSP, 8), withSaved(cFrame(KindFrame, amd64RBP, 8), 0, -5, 0, -6),
		},
		{
			"restored", "z", []byte{opOffset | amd64R12, 2, opRememberState, opAdvance | 4, opRestore | amd64R12, opDefCFAOffset, 24, opAdvance | 4, opRestoreState},
			withSaved(cFrame(KindFrame, amd64RSP, 8), 0, 0, -2), withSaved(cFrame(KindFrame, amd64RSP, 8), 0, 0, -2),
		},
		{
			"undefined return address", "z", []byte{opUndefined, amd64RIP},
			Rule{Kind: KindRoot}, Rule{Kind: KindRoot},
		},
		{
			"procedure linkage table", "z", []byte{opDefCFAExpression, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22},
			cFrame(KindPLT, amd64RSP, 11), cFrame(KindPLT, amd64RSP, 11),
		},
		{
			// rbp at rbp+0, rbx at rbp-24, CFA at *(rbp-16)
			"realigned stack", "z", []byte{opAdvance | 8, opDefCFAExpression, 3, 0x76, 0x70, 0x06,
				opExpression, amd64RBP, 2, 0x76, 0, opExpression, amd64RBX, 2, 0x76, 0x68},
			cFrame(KindFrame, amd64RSP, 8), drap,
		},
		{
			"signal", "zS", []byte{opDefCFAExpression, 4, 0x77, 0xa0, 1, 0x06,
				opExpression, amd64RIP, 3, 0x77, 0xa8, 1, opExpression, amd64RBP, 3, 0x77, 0xf8, 0},
			signal, signal,
		},
		{
			// What StgRun's says: everything from rsp, rsp itself further up.
			"stack pointer apart from the CFA", "z", []byte{opDefCFA, amd64RSP, 0, opOffsetExtendedSF, amd64RBX, 0x70, opOffsetExtendedSF, amd64RIP, 0x6f,
				opValExpression, amd64RSP, 3, 0x77, 0x90, 1},
			withSaved(cFrame(KindFrame, amd64RSP, 144), 0, -2), withSaved(cFrame(KindFrame, amd64RSP, 144), 0, -2),
		},
		{
			"return address in a register", "z", []byte{opAdvance | 8, opRegister, amd64RIP, 5},
			cFrame(KindFrame, amd64RSP, 8), Rule{Kind: KindUnknown},
		},
		{
			"register in a register", "z", []byte{opRegister, amd64RBP, 5},
			withSaved(cFrame(KindFrame, amd64RSP, 8), Lost), withSaved(cFrame(KindFrame, amd64RSP, 8), Lost),
		},
		{
			"unknown expression", "z", []byte{opDefCFAExpression, 3, 0x77, 0, 0x1f}, // neg
			Rule{Kind: KindUnknown}, Rule{Kind: KindUnknown},
		},
		{
			"outgoing arguments", "z", []byte{opGNUArgsSize, 16, opNop},
			cFrame(KindFrame, amd64RSP, 8), cFrame(KindFrame, amd64RSP, 8),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := frames{eh: true}
			cie := f.cie(c.augmentation, -8, amd64RIP, cRules...)
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

func TestArm64(t *testing.T) {
	f := frames{eh: true}
	cie := f.cie("z", -8, arm64LR, opDefCFA, arm64SP, 0)
	f.fde(cie, true, textAddr, 16, opNegateRAState, opAdvance|4, opDefCFAOffset, 48, opOffset|arm64FP, 6, opOffset|arm64LR, 5, opOffset|arm64X20, 1)
	m := image{machine: elf.EM_AARCH64, text: make([]byte, 64), eh: f.b}
	table, err := m.compile(DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := table.Lookup(textAddr), (Rule{Kind: KindFrame, Reg: arm64SP, Flags: FlagRASigned}); got != want {
		t.Errorf("at entry: %v, want %v", got, want)
	}
	want := Rule{Kind: KindFrame, Reg: arm64SP, Offset: 48, Flags: FlagRASigned}
	want.Saved[0], want.Saved[1], want.Saved[3] = -5, -6, -1
	if got := table.Lookup(textAddr + 4); got != want {
		t.Errorf("in the body: %v, want %v", got, want)
	}
}

// ghcCommon is GHC's common information.
func ghcCommon(f *frames) int {
	return f.cie("", -8, amd64RIP, opDefCFA, amd64RBP, 0, opOffset|amd64RIP, 0, opSameValue, amd64RSP, opValOffset, amd64RBP, 0)
}

func haskell(offset int32) Rule { return Rule{Kind: KindHaskell, Reg: amd64RBP, Offset: offset} }

// The quirks of GHC's frame descriptions; see doc.go.
func TestHaskellDescriptions(t *testing.T) {
	at := func(off uint64, code ...byte) []byte { return append(setLoc(textAddr+off), code...) }
	rspMoved := []byte{opValExpression, amd64RSP, 2, 0x77, 8}
	f := frames{}
	cie := ghcCommon(&f)
	// GHC 9.0: the range covers the first block alone.
	f.fde(cie, false, textAddr+0x1f, 8, join(
		at(0x2f, opDefCFAOffset, 16),
		at(0x40, opDefCFAOffsetSF, 24), // not a multiple of the alignment
		// A C call: rows about rsp alone put the CFA back to 0.
		at(0x50, append([]byte{opDefCFAOffset, 0}, rspMoved...)...),
		at(0x58, opSameValue, amd64RSP),
		at(0x60, opDefCFAOffset, 32),
		at(0x68, opDefCFAExpression, 3, 0x76, 8, 0x06),
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
	deref := Rule{Kind: KindHaskellDeref, Reg: amd64RBP, Offset: 8}
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

func TestFrameHeaderSegment(t *testing.T) {
	f := frames{eh: true}
	f.fde(f.cie("z", -8, amd64RIP, cRules...), true, textAddr, 16)
	hdr := []byte{1, pePCRel | peS4, peOmit, peOmit}
	distance := int32(frameAddr - (hdrAddr + 4))
	hdr = binary.LittleEndian.AppendUint32(hdr, uint32(distance))
	hdr = append(hdr, make([]byte, 8)...)
	m := image{text: make([]byte, 64), eh: f.b, hdr: hdr, noSections: true}
	table, err := m.compile(DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if got := table.Lookup(textAddr); got != cFrame(KindFrame, amd64RSP, 8) {
		t.Errorf("rule %v", got)
	}
}

func TestMalformed(t *testing.T) {
	good := func(f *frames) { f.fde(f.cie("z", -8, amd64RIP, cRules...), true, textAddr+32, 16) }
	for _, c := range []struct {
		name  string
		write func(f *frames)
	}{
		{"instruction", func(f *frames) { f.fde(f.cie("z", -8, amd64RIP, cRules...), true, textAddr, 16, 0x3f) }},
		{"operand", func(f *frames) {
			f.fde(f.cie("z", -8, amd64RIP, cRules...), true, textAddr, 16, opNop, opNop, opNop, opNop, opNop, opNop, opAdvance4)
		}},
		{"restored without a state", func(f *frames) { f.fde(f.cie("z", -8, amd64RIP, cRules...), true, textAddr, 16, opRestoreState) }},
		{"location going back", func(f *frames) {
			f.fde(f.cie("z", -8, amd64RIP, cRules...), true, textAddr, 16, append([]byte{opAdvance | 2}, setLoc(textAddr)...)...)
		}},
		{"no common information", func(f *frames) { f.fde(4, true, textAddr, 16) }},
		{"augmentation", func(f *frames) { f.fde(f.cie("zX", -8, amd64RIP, cRules...), true, textAddr, 16) }},
		{"return address column", func(f *frames) { f.fde(f.cie("z", -8, amd64RBX, cRules...), true, textAddr, 16) }},
		{"length", func(f *frames) { f.fde(f.cie("zP", -8, amd64RIP, 0xff), true, textAddr, 16) }},
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
			if got := table.Lookup(textAddr + 32); got != cFrame(KindFrame, amd64RSP, 8) {
				t.Errorf("well-formed entry gave %v", got)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	f := frames{eh: true}
	cie := f.cie("z", -8, amd64RIP, cRules...)
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
