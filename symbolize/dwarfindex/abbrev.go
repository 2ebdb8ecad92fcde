package dwarfindex

import (
	"debug/dwarf"
	"slices"
)

// Tags, attributes and forms that debug/dwarf does not export (DWARF 5, §7.5; GHC's own
// from GHC/CmmToAsm/Dwarf/Constants.hs).
const (
	tagGHCSrcNote = 0x5b00

	attrMIPSLinkage  = 0x2007
	attrGHCTickPar   = 0x2b20
	attrGHCSpanFile  = 0x2b00
	attrGHCSpanLine  = 0x2b01
	attrGHCSpanCol   = 0x2b02
	attrGHCSpanELine = 0x2b03
	attrGHCSpanECol  = 0x2b04

	formAddr          = 0x01
	formBlock2        = 0x03
	formBlock4        = 0x04
	formData2         = 0x05
	formData4         = 0x06
	formData8         = 0x07
	formString        = 0x08
	formBlock         = 0x09
	formBlock1        = 0x0a
	formData1         = 0x0b
	formFlag          = 0x0c
	formSdata         = 0x0d
	formStrp          = 0x0e
	formUdata         = 0x0f
	formRefAddr       = 0x10
	formRef1          = 0x11
	formRef2          = 0x12
	formRef4          = 0x13
	formRef8          = 0x14
	formRefUdata      = 0x15
	formIndirect      = 0x16
	formSecOffset     = 0x17
	formExprloc       = 0x18
	formFlagPresent   = 0x19
	formStrx          = 0x1a
	formAddrx         = 0x1b
	formRefSup4       = 0x1c
	formStrpSup       = 0x1d
	formData16        = 0x1e
	formLineStrp      = 0x1f
	formRefSig8       = 0x20
	formImplicitConst = 0x21
	formLoclistx      = 0x22
	formRnglistx      = 0x23
	formRefSup8       = 0x24
	formStrx1         = 0x25
	formStrx2         = 0x26
	formStrx3         = 0x27
	formStrx4         = 0x28
	formAddrx1        = 0x29
	formAddrx2        = 0x2a
	formAddrx3        = 0x2b
	formAddrx4        = 0x2c

	languageHaskell = 0x18
)

// attrSpec is one attribute of an abbreviation.
type attrSpec struct {
	attr     dwarf.Attr
	form     uint32
	implicit int64 // of formImplicitConst
}

type abbrev struct {
	tag      dwarf.Tag
	children bool
	specs    []attrSpec
	// fixed is the size of all attributes where none varies, else −1.
	fixed int
	shape shape
}

// shape marks the abbreviations that GHC writes for all but a few entries; they
// are read without going through their attributes.
type shape uint8

const (
	shapeOther shape = iota
	shapeBlock       // name: string; low, high: 8-byte addresses
	shapeNote        // file: string; line, column, end line, end column: 4, 2, 4, 2 bytes
)

var (
	blockSpecs = []attrSpec{{attr: dwarf.AttrName, form: formString}, {attr: dwarf.AttrLowpc, form: formAddr}, {attr: dwarf.AttrHighpc, form: formAddr}}
	noteSpecs  = []attrSpec{
		{attr: attrGHCSpanFile, form: formString}, {attr: attrGHCSpanLine, form: formData4}, {attr: attrGHCSpanCol, form: formData2},
		{attr: attrGHCSpanELine, form: formData4}, {attr: attrGHCSpanECol, form: formData2},
	}
)

func shapeOf(a *abbrev, addrSize int) shape {
	switch {
	case a.tag == dwarf.TagLexDwarfBlock && addrSize == 8 && slices.Equal(a.specs, blockSpecs):
		return shapeBlock
	case a.tag == tagGHCSrcNote && slices.Equal(a.specs, noteSpecs):
		return shapeNote
	}
	return shapeOther
}

// abbrevTable maps codes to abbreviations. Codes are small and dense in
// practice; others go to the map.
type abbrevTable struct {
	dense  []abbrev
	sparse map[uint64]*abbrev
}

const (
	maxDense     = 4096
	maxAbbrevs   = 1 << 16
	maxSpecs     = 1 << 10
	maxTableSize = 1 << 22 // attribute specifications of one table
)

func (t *abbrevTable) get(code uint64) *abbrev {
	if code < uint64(len(t.dense)) {
		if a := &t.dense[code]; a.tag != 0 {
			return a
		}
		return nil
	}
	return t.sparse[code]
}

// parseAbbrevs reads the table at off. It reports false for a malformed one.
func parseAbbrevs(section []byte, off uint64, addrSize, offsetSize int, version uint16) (*abbrevTable, bool) {
	if off >= uint64(len(section)) {
		return nil, false
	}
	c := cursor{b: section, off: int(off)}
	t := &abbrevTable{}
	total := 0
	for n := 0; n < maxAbbrevs; n++ {
		code := c.uleb()
		if c.bad {
			return nil, false
		}
		if code == 0 {
			return t, true
		}
		a := abbrev{tag: dwarf.Tag(min(c.uleb(), 0xffffffff)), children: c.u8() != 0}
		for {
			attr, form := c.uleb(), c.uleb()
			if c.bad || len(a.specs) > maxSpecs {
				return nil, false
			}
			if attr == 0 && form == 0 {
				break
			}
			s := attrSpec{attr: dwarf.Attr(min(attr, 0xffffffff)), form: uint32(min(form, 0xffffffff))}
			if form == formImplicitConst {
				s.implicit = c.sleb()
			}
			a.specs = append(a.specs, s)
		}
		if total += len(a.specs); total > maxTableSize || a.tag == 0 {
			return nil, false
		}
		a.fixed = fixedSize(a.specs, addrSize, offsetSize, version)
		a.shape = shapeOf(&a, addrSize)
		if code < maxDense {
			for uint64(len(t.dense)) <= code {
				t.dense = append(t.dense, abbrev{})
			}
			t.dense[code] = a
			continue
		}
		if t.sparse == nil {
			t.sparse = make(map[uint64]*abbrev)
		}
		t.sparse[code] = &a
	}
	return nil, false
}

// uses reports whether an attribute of an abbreviation has one of the forms.
func (t *abbrevTable) uses(forms ...uint32) bool {
	has := func(a *abbrev) bool {
		return slices.ContainsFunc(a.specs, func(s attrSpec) bool { return slices.Contains(forms, s.form) })
	}
	for i := range t.dense {
		if has(&t.dense[i]) {
			return true
		}
	}
	for _, a := range t.sparse {
		if has(a) {
			return true
		}
	}
	return false
}

// fixedSize adds up the forms' sizes, −1 where one varies.
func fixedSize(specs []attrSpec, addrSize, offsetSize int, version uint16) int {
	n := 0
	for _, s := range specs {
		f := formSize(s.form, addrSize, offsetSize, version)
		if f < 0 {
			return -1
		}
		n += f
	}
	return n
}

// formSize is the size of a form whose size does not depend on the data, else −1.
func formSize(form uint32, addrSize, offsetSize int, version uint16) int {
	switch form {
	case formFlagPresent, formImplicitConst:
		return 0
	case formData1, formFlag, formRef1, formStrx1, formAddrx1:
		return 1
	case formData2, formRef2, formStrx2, formAddrx2:
		return 2
	case formStrx3, formAddrx3:
		return 3
	case formData4, formRef4, formStrx4, formAddrx4, formRefSup4:
		return 4
	case formData8, formRef8, formRefSig8, formRefSup8:
		return 8
	case formData16:
		return 16
	case formAddr:
		return addrSize
	case formRefAddr:
		if version <= 2 {
			return addrSize
		}
		return offsetSize
	case formStrp, formSecOffset, formLineStrp, formStrpSup:
		return offsetSize
	}
	return -1
}
