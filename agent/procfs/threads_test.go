package procfs

import "testing"

func FuzzParseTimeslices(f *testing.F) {
	f.Add([]byte("12 34 56\n"))
	f.Add([]byte("1 2 -3"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if n, ok := parseTimeslices(raw); !ok && n != 0 && n != 1<<64-1 {
			t.Errorf("a refused text gives %d", n)
		}
	})
}
