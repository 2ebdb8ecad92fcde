package rtsites

import (
	"slices"
	"testing"
)

// Where large objects are known to be large, in what C compilers make of
// allocateMightFail.
func TestFindLargeSite(t *testing.T) {
	var (
		pushR12   = []byte{0x41, 0x54}
		saveArg   = []byte{0x48, 0x89, 0xfd}                         // mov %rdi,%rbp
		compare   = []byte{0x48, 0x81, 0xfe, 0x98, 0x01, 0x00, 0x00} // cmp $0x198,%rsi
		otherSize = []byte{0x48, 0x81, 0xfe, 0x00, 0x10, 0x00, 0x00} // cmp $0x1000,%rsi
		ja1       = []byte{0x77, 0x01}
		jbe       = []byte{0x76, 0x07}
		ret       = []byte{0xc3}
		zero      = []byte{0x31, 0xc0}       // xor %eax,%eax
		cmpArg    = []byte{0x48, 0x39, 0xf2} // cmp %rsi,%rdx
		jbBack    = []byte{0x72, 0xf6}
		clobber   = []byte{0x48, 0x89, 0xc6} // mov %rax,%rsi
		clobber32 = []byte{0x89, 0xc7}       // mov %eax,%edi
	)
	const at = 0x400000
	for _, c := range []struct {
		name string
		code [][]byte
		want uint64
	}{
		{"out of line", [][]byte{pushR12, saveArg, compare, ja1, ret, zero, cmpArg, jbBack}, at + 20},
		{"in line", [][]byte{compare, jbe, zero, cmpArg, jbBack, ret}, at + 14},
		{"argument overwritten", [][]byte{compare, ja1, ret, zero, clobber, jbBack}, 0},
		{"half an argument overwritten", [][]byte{compare, ja1, ret, clobber32, cmpArg, jbBack}, 0},
		{"another size", [][]byte{otherSize, ja1, ret, zero, cmpArg, jbBack}, 0},
		{"no branch", [][]byte{pushR12, compare, ret}, 0},
		{"cut short", [][]byte{compare, {0x77}}, 0},
		{"branch to nowhere", [][]byte{compare, {0x77, 0x70}, ret}, 0},
		{"endless", [][]byte{compare, {0x77, 0xf7}}, 0},
		{"nothing", nil, 0},
	} {
		if got := (x86{}).large(decodeAll(x86{}, slices.Concat(c.code...), at)); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
}

// The conditional jump to the jump back into the program.
func TestFindBlockSite(t *testing.T) {
	const at = 0x400000
	code := []byte{
		0x48, 0x83, 0x78, 0x68, 0x00, // cmpq $0,0x68(%rax)
		0x7d, 0x02, // jge +2
		0x75, 0xf7, // jne back
		0xff, 0x65, 0x00, // jmp *0(%rbp)
	}
	if got := blockSite(x86{}, decodeAll(x86{}, code, at)); got != at+5 {
		t.Errorf("%#x, want %#x", got, at+5)
	}
	if got := blockSite(x86{}, decodeAll(x86{}, code[:9], at)); got != 0 {
		t.Errorf("%#x without the jump back", got)
	}
}
