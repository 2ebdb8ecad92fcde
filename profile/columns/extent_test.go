package columns

import (
	"testing"
)

// GHC's three notations of source spans are parsed to half-open extents, and anything
// else is refused.
func TestParseSrcLoc(t *testing.T) {
	for in, want := range map[string]string{
		"T.hs:9:1-66": "T.hs 9:1-9:67", "src/A.hs:3:5": "src/A.hs 3:5-3:6", "A.hs:(11,1)-(19,21)": "A.hs 11:1-19:22",
		"<built-in>": "", "<entire-module>": "", "A.hs:x:y": "", ":1:2": "", "A.hs:(1,2)": "", "A.hs:9:1-": "", "": "",
		"A.hs:99999999999:1": "", "C:\\A.hs:3:5-7": "C:\\A.hs 3:5-3:8",
	} {
		file, x, ok := parseSrcLoc(in)
		got := ""
		if ok {
			got = file + " " + x.String()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
