package sources

import "testing"

// Spans are read in all forms that GHC prints; anything else is no span.
func TestParseExtent(t *testing.T) {
	for in, want := range map[string]Extent{
		"3:7": {3, 7, 3, 8}, "3:7-12": {3, 7, 3, 13}, "(3,7)-(5,2)": {3, 7, 5, 3}, "(3,7)-(5,0)": {3, 7, 5, 1},
		"": {}, "x": {}, "3": {}, "0:1": {}, "3:7-2": {}, "(5,1)-(3,2)": {}, "3:99999999999": {}, "<no location info>": {},
	} {
		if got := ParseExtent(in); got != want {
			t.Errorf("ParseExtent(%q) = %v, want %v", in, got, want)
		}
	}
	if file, x := ParseLocation("C:/a/Main.hs:3:7-12"); file != "C:/a/Main.hs" || x != (Extent{3, 7, 3, 13}) {
		t.Errorf("%q %v", file, x)
	}
}
