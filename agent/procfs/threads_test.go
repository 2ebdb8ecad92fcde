package procfs

import "testing"

func TestParseSchedstat(t *testing.T) {
	if fields, ok := parseSchedstat([]byte("12 34 56\n")); !ok || fields != [3]uint64{12, 34, 56} {
		t.Errorf("got %v, %v", fields, ok)
	}
}

func FuzzParseSchedstat(f *testing.F) {
	f.Add([]byte("12 34 56\n"))
	f.Add([]byte("1 2 -3"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if fields, ok := parseSchedstat(raw); !ok && fields != [3]uint64{} {
			t.Errorf("a refused text gives %v", fields)
		}
	})
}
