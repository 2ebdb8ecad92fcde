package format

import "testing"

// A share that is not zero is never shown as zero.
func TestShareNeverHidesSomething(t *testing.T) {
	for f, want := range map[float64]string{0: "0.0%", 0.00001: "<0.1%", 0.0005: "0.1%", 0.123: "12.3%", 0.9994: "99.9%", 0.9996: "100%", 1.5: "150%"} {
		if got := Share(f); got != want {
			t.Errorf("Share(%v) = %q, want %q", f, got, want)
		}
	}
}

// Numbers are shown with about three digits, in the unit that fits.
func TestUnits(t *testing.T) {
	for _, c := range []struct {
		w    uint64
		unit string
		want string
	}{
		{0, "ns", "0 s"}, {999, "ns", "999 ns"}, {1500, "ns", "1.50 µs"}, {250e6, "ns", "250 ms"}, {12.04e9, "ns", "12.04 s"},
		{1023, "bytes", "1023 B"}, {1536, "bytes", "1.50 KiB"}, {3 << 30, "bytes", "3.00 GiB"}, {1 << 63, "bytes", "8.00 EiB"},
		{24_100_000_000, "cycles", "24.1 Gcycles"}, {120, "page-faults", "120 page-faults"}, {5, "", "5"},
	} {
		if got := Quantity(c.w, c.unit); got != c.want {
			t.Errorf("%d %s: %q, want %q", c.w, c.unit, got, c.want)
		}
	}
	if got := Count(1234567); got != "1 234 567" {
		t.Error(got)
	}
}

// What samples of unequal weight are worth is rounded to the nearest, and no less than one.
func TestWorth(t *testing.T) {
	for _, c := range []struct {
		n         uint64
		effective float64
		want      string
	}{{417, 10.6, "417 samples worth 11"}, {417, 10.4, "417 samples worth 10"}, {2, 0.3, "2 samples worth 1"}, {10, 8.5, "10 samples"}, {1, 0, "1 sample"}} {
		if got := Worth(c.n, "sample", c.effective); got != c.want {
			t.Errorf("%d worth %v: %q, want %q", c.n, c.effective, got, c.want)
		}
	}
}

// Half an interval is rounded up, and takes at most five columns.
func TestPlusMinus(t *testing.T) {
	for _, c := range []struct {
		share, half float64
		want        string
	}{{0.3, 0.0211, "±2.2"}, {0.3, 0.021, "±2.1"}, {0.3, 0.00001, "±0.1"}, {0.3, 0.0999, "±10"}, {0.5, 0.113, "±12"}, {0, 0.0295, "<3.0"}, {1, 0, ""}} {
		if got := PlusMinus(c.share, c.half); got != c.want {
			t.Errorf("PlusMinus(%v, %v) = %q, want %q", c.share, c.half, got, c.want)
		}
	}
}

// Text is filled at spaces; long words and lines of code stay whole, and no word is lost.
func TestFill(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"one two three", "one two\nthree"},
		{"one twothree four", "one\ntwothree\nfour"},
		{"/a/very/long/path is here", "/a/very/long/path\nis here"},
		{"head of it\n  code stays as it is\nend", "head of\nit\n  code stays as it is\nend"},
		{"größer ist es", "größer\nist es"},
	} {
		if got := Fill(c.in, 8); got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}
