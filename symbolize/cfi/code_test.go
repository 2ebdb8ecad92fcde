package cfi

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"ccagent/internal/elftest"
	"ccagent/internal/ghc"
	"ccagent/internal/testprog"
)

// code writes STG code with its info tables.
type code struct{ b []byte }

func (c *code) here() uint64 { return textAddr + uint64(len(c.b)) }

// table writes an info table and gives the info pointer.
func (c *code) table(kind ghc.ClosureType, layout uint64) uint64 {
	for len(c.b)%8 != 0 {
		c.b = append(c.b, 0)
	}
	c.b = binary.LittleEndian.AppendUint64(c.b, layout)
	c.b = binary.LittleEndian.AppendUint64(c.b, uint64(kind))
	return c.here()
}

// fun writes a function's.
func (c *code) fun(funType, arity uint32, bitmap uint64) uint64 {
	for len(c.b)%8 != 0 {
		c.b = append(c.b, 0)
	}
	c.b = binary.LittleEndian.AppendUint64(c.b, 0)
	c.b = binary.LittleEndian.AppendUint64(c.b, bitmap)
	c.b = binary.LittleEndian.AppendUint32(c.b, funType)
	c.b = binary.LittleEndian.AppendUint32(c.b, arity)
	return c.table(ghc.FunStatic, 0)
}

// asm writes instructions in hexadecimal; @ is an address's low 32 bits.
func (c *code) asm(t *testing.T, text string, addrs ...uint64) {
	t.Helper()
	for _, word := range strings.Fields(text) {
		if word == "@" {
			c.b = binary.LittleEndian.AppendUint32(c.b, uint32(addrs[0]))
			addrs = addrs[1:]
			continue
		}
		b, err := hex.DecodeString(word)
		if err != nil {
			t.Fatal(err)
		}
		c.b = append(c.b, b...)
	}
}

// Rows of code without frame information: each comment is an instruction, each
// want the distance of the caller's frame from Sp before it.
func TestRowsFromCode(t *testing.T) {
	c := code{b: make([]byte, 64)}
	type place struct {
		addr uint64
		want Rule
	}
	var places []place
	at := func(want int32) { places = append(places, place{c.here(), haskell(want)}) }

	update := c.table(ghc.UpdateFrame, 1)
	c.asm(t, "4883c510 ff6500") // add $16,%rbp; jmp *(%rbp)

	thunk := c.table(ghc.Thunk, 0)
	continuation := thunk + 0x40
	at(0)
	c.asm(t, "48c745f0 @", update) // movq $update,-16(%rbp)
	at(-16)
	c.asm(t, "48c745e0 @", continuation) // movq $continuation,-32(%rbp)
	at(-16)
	c.asm(t, "4883c5e0") // add $-32,%rbp
	at(16)
	c.asm(t, "f6c307 7515") // test $7,%bl; jne continuation
	c.asm(t, "ff23")        // jmp *(%rbx)
	for c.here() < continuation-16 {
		c.b = append(c.b, 0)
	}
	if got := c.table(ghc.RetSmall, 1); got != continuation {
		t.Fatalf("continuation at %#x, not %#x", got, continuation)
	}
	at(16)
	c.asm(t, "488b4508") // mov 8(%rbp),%rax
	at(16)
	c.asm(t, "4883c510") // add $16,%rbp
	at(0)
	c.asm(t, "ff6500") // jmp *(%rbp)

	// Seven words of arguments, of which two are on the stack; then five, of a
	// type that does not say whether they are in other registers.
	seven := c.fun(27, 7, 0)
	at(16)
	c.asm(t, "4883c510") // add $16,%rbp
	at(0)
	c.asm(t, "ff6500") // jmp *(%rbp)
	generic := c.fun(0, 7, 7)
	at(8)
	c.asm(t, "7404") // je over
	at(8)
	c.asm(t, "4883c508") // add $8,%rbp
	// over: the other way comes here with the argument still there
	c.asm(t, "ff6500") // jmp *(%rbp)

	// A call is saved, as the RTS does in code whose entry shows nothing.
	saved := c.table(ghc.RetFun, 0)
	c.asm(t, "ff6500") // jmp *(%rbp)
	saving := c.fun(1, 20, 0)
	at(0)
	c.asm(t, "4883c5d8") // add $-40,%rbp
	at(40)
	c.asm(t, "48897520") // mov %rsi,32(%rbp)
	at(40)
	c.asm(t, "48c7450802000000") // movq $2,8(%rbp)
	at(40)
	c.asm(t, "48c74500 @", saved) // movq $saved,0(%rbp)
	at(40)
	c.asm(t, "ff23") // jmp *(%rbx)

	// Sp is lost.
	lost := c.table(ghc.Thunk, 0)
	at(0)
	c.asm(t, "4801cd") // add %rcx,%rbp
	places = append(places, place{c.here(), Rule{}})
	c.asm(t, "ff6500 9090")
	c.b = append(c.b, make([]byte, 64)...)

	var data []byte
	for _, addr := range []uint64{thunk, seven, generic, saving, lost} {
		data = binary.LittleEndian.AppendUint64(data, addr)
	}
	// Enough of them to be taken for Haskell.
	for range minCodeRows {
		addr := c.table(ghc.Constr, 0)
		c.asm(t, "ff6500")
		data = binary.LittleEndian.AppendUint64(data, addr)
	}
	m := image{text: c.b, data: data}
	table, err := m.compile(DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range places {
		if got := table.Lookup(p.addr); got != p.want {
			t.Errorf("at %#x: %v, want %v", p.addr-textAddr, got, p.want)
		}
	}
	limits := DefaultLimits
	limits.Instructions = 0
	if _, err := m.compile(limits); err == nil {
		t.Error("rows without looking at code")
	}
}

// C libraries are not taken for Haskell, hand-written assembly without frame
// information included.
func TestNoHaskellInC(t *testing.T) {
	for _, path := range systemLibraries(t) {
		if n := compile(t, path, DefaultLimits).Stats.Code; n != 0 {
			t.Errorf("%s: %d ranges of Haskell code", path, n)
		}
	}
}

// The libraries of a program, which are built without -g, have rows for all but
// little of their code.
func TestCoverage(t *testing.T) {
	exe := testprog.Build(t, "example", testprog.Options{})
	f := elftest.Open(t, exe)
	table := compile(t, exe, DefaultLimits)
	s := f.Section(".text")
	without := 0
	for addr := s.Addr; addr < s.Addr+s.Size; addr++ {
		if k := table.Lookup(addr).Kind; k == KindNone || k == KindUnknown {
			without++
		}
	}
	if uint64(without) > s.Size/20 {
		t.Errorf("%d of %d bytes of code without a row", without, s.Size)
	}
	t.Logf("%d of %d bytes of code without a row", without, s.Size)
}
