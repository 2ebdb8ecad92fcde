package census

import "testing"

// What code pushes is what it moves Sp down by on any way to another procedure; where it calls C first, or that is not found
// out, it is the most that is taken.
func TestPushes(t *testing.T) {
	const at = 0x400000
	for _, c := range []struct {
		name string
		text []byte
		want uint64
	}{
		{"add $-24,%rbp; jmp *(%rbx)", []byte{0x48, 0x83, 0xc5, 0xe8, 0xff, 0x23}, 24},
		{"sub $16,%rbp; jmp *(%rbx)", []byte{0x48, 0x83, 0xed, 0x10, 0xff, 0x23}, 16},
		{"lea -32(%rbp),%rbp; ret", []byte{0x48, 0x8d, 0x6d, 0xe0, 0xc3}, 32},
		{"add $8,%rbp; jmp *(%rbp)", []byte{0x48, 0x83, 0xc5, 0x08, 0xff, 0x65, 0x00}, 0},
		{"je +4; add $-24,%rbp; jmp *(%rbx)", []byte{0x74, 0x04, 0x48, 0x83, 0xc5, 0xe8, 0xff, 0x23}, 24},
		{"call; add $-24,%rbp", []byte{0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc5, 0xe8, 0xff, 0x23}, 8 * belowSp},
		{"jmp out of what was read", []byte{0xe9, 0, 0, 0, 0x10}, 8 * belowSp},
		{"lea -256(%rbp),%rbp; ret", []byte{0x48, 0x8d, 0xad, 0, 0xff, 0xff, 0xff, 0xc3}, 256},
		{"add $-2147483648,%rbp; ret", []byte{0x48, 0x81, 0xc5, 0, 0, 0, 0x80, 0xc3}, maxRunning},
	} {
		if got := pushesIn(c.text, at, at); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
	}
}

// Any bytes may be where a thread runs: what they push is bounded, and known or that of belowSp words.
func FuzzPushes(f *testing.F) {
	f.Add([]byte{0x48, 0x83, 0xc5, 0xe8, 0xff, 0x23}, uint64(0x400000), uint16(0))
	f.Fuzz(func(t *testing.T, text []byte, from uint64, in uint16) {
		if most := pushesIn(text[:min(len(text), pushCode)], from, from+uint64(in)); most > maxRunning {
			t.Errorf("%d bytes", most)
		}
	})
}
