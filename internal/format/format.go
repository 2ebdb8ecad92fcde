// Package format formats numbers for people: shares, counts, bytes and times, on the
// viewer's screens and in text.
package format

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Share gives a share in at most six columns, for screens: "12.3%", "100%", "<0.1%". A share
// that is not zero never shows as zero; one that is not a number is "-".
func Share(f float64) string {
	switch {
	case f != f:
		return "-"
	case f > 0 && f < 0.0005:
		return "<0.1%"
	case f >= 0.9995:
		return fmt.Sprintf("%.0f%%", 100*f)
	default:
		return fmt.Sprintf("%.1f%%", 100*f)
	}
}

// Column gives a share with one decimal in six columns, for tables of text. Zero is a dot,
// and a share that is not zero never shows as zero.
func Column(f float64) string {
	switch {
	case f == 0:
		return "    . "
	case f < 0.0005:
		return " <0.1%"
	default:
		return fmt.Sprintf("%5.1f%%", f*100)
	}
}

// PlusMinus gives half of a 95 % interval about a share in at most five columns: "±2.1",
// "±12". It rounds up, and is empty for what is certain. Of a share of zero it gives the upper bound: "<0.3".
func PlusMinus(share, half float64) string {
	if half <= 0 {
		return ""
	}
	sign := "±"
	if share == 0 {
		sign = "<"
	}
	points := math.Ceil(1000*half-1e-6) / 10
	if points >= 10 {
		return fmt.Sprintf("%s%.0f", sign, math.Ceil(100*half-1e-6))
	}
	return fmt.Sprintf("%s%.1f", sign, max(points, 0.1))
}

// Percent is Column without padding, for sentences.
func Percent(f float64) string {
	if f == 0 {
		return "0%"
	}
	return strings.TrimSpace(Column(f))
}

// Quantity gives a weight in its unit: "12.04 s", "3.20 GiB", "24.1 Gcycles". The unit is
// written as it is.
func Quantity(w uint64, unit string) string {
	switch unit {
	case "ns":
		return Duration(w)
	case "bytes":
		return Bytes(w)
	default:
		return scaled(float64(w), unit)
	}
}

// Brief is Quantity in at most eight columns, for tables whose heading says what is counted: the
// name of a unit that is neither time nor bytes is left out.
func Brief(w uint64, unit string) string {
	switch unit {
	case "ns", "bytes":
		return Quantity(w, unit)
	}
	return scaled(float64(w), "")
}

// Duration gives ns in the unit that fits: "0 s", "17 ns", "1.23 ms", "12.04 s".
func Duration(ns uint64) string {
	f := float64(ns)
	switch {
	case ns == 0:
		return "0 s"
	case ns < 1e3:
		return fmt.Sprintf("%d ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%s µs", digits(f/1e3))
	case ns < 1e9:
		return fmt.Sprintf("%s ms", digits(f/1e6))
	default:
		return fmt.Sprintf("%.2f s", f/1e9)
	}
}

// Short gives ns with three significant digits in few columns: "1.23ms".
func Short(ns float64) string {
	switch {
	case ns >= 999.5e6: // which rounds to the next unit's 1
		return fmt.Sprintf("%.3gs", ns/1e9)
	case ns >= 999.5e3:
		return fmt.Sprintf("%.3gms", ns/1e6)
	case ns >= 999.5:
		return fmt.Sprintf("%.3gµs", ns/1e3)
	default:
		return fmt.Sprintf("%.3gns", ns)
	}
}

// Bytes gives bytes in the binary unit that fits.
func Bytes(n uint64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1000 && i < len(units)-1 {
		f /= 1024
		i++
	}
	return fmt.Sprintf("%s %ciB", digits(f), units[i])
}

// ShortBytes gives bytes in at most five columns, for axes: "1.4M".
func ShortBytes(n uint64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%dB", n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1000 && i < len(units)-1 {
		f /= 1024
		i++
	}
	if f < 10 && f != math.Trunc(f) {
		return fmt.Sprintf("%.1f%c", f, units[i])
	}
	return fmt.Sprintf("%.0f%c", f, units[i])
}

// BytesLike gives bytes in the unit that fits the largest of a column, with one decimal. What is not
// zero never shows as zero.
func BytesLike(n, largest uint64) string {
	const units = "KMGTPE"
	if largest < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	unit, i := 1024.0, 0
	for float64(largest)/unit >= 1000 && i < len(units)-1 {
		unit *= 1024
		i++
	}
	f := float64(n) / unit
	switch {
	case n == 0:
		return fmt.Sprintf("0 %ciB", units[i])
	case f < 0.05:
		return fmt.Sprintf("<0.1 %ciB", units[i])
	}
	return fmt.Sprintf("%.1f %ciB", f, units[i])
}

// SignedLike gives a difference in bytes as BytesLike does, with its sign.
func SignedLike(n int64, largest uint64) string {
	switch {
	case n > 0:
		return "+" + BytesLike(uint64(n), largest)
	case n < 0:
		return "−" + BytesLike(uint64(-n), largest)
	}
	return "0"
}

// Signed gives a difference in bytes, with its sign.
func Signed(n int64) string {
	switch {
	case n > 0:
		return "+" + Bytes(uint64(n))
	case n < 0:
		return "−" + Bytes(uint64(-n))
	}
	return "0"
}

// Count gives a number in groups of three digits: "24 012".
func Count(n uint64) string { return grouped(n, " ") }

// Commas gives a number in groups of three digits as GHC's reports do: "24,012".
func Commas(n uint64) string { return grouped(n, ",") }

func grouped(n uint64, sep string) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + sep + s[i:]
	}
	return s
}

// Plural gives a count with its noun.
func Plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// Unequal reports whether things weigh so differently that their number misleads: effective is how many of equal weight would be worth as
// much, 0 if that is not known.
func Unequal(n uint64, effective float64) bool {
	return effective > 0 && effective < 0.8*float64(n)
}

// Worth gives a count with its noun, and what it is worth where things weigh differently: "417 samples worth 11".
func Worth(n uint64, noun string, effective float64) string {
	s := Plural(n, noun)
	if Unequal(n, effective) {
		s += " worth " + Count(uint64(max(effective, 1)+0.5))
	}
	return s
}

func scaled(f float64, unit string) string {
	prefix := ""
	for _, p := range []string{"k", "M", "G", "T", "P", "E"} {
		if f < 10000 {
			break
		}
		f /= 1000
		prefix = p
	}
	s := digits(f)
	if prefix == "" {
		s = strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strings.TrimRight(s+" "+prefix+unit, " ")
}

// digits gives about three significant digits.
func digits(f float64) string {
	switch {
	case f < 10:
		return fmt.Sprintf("%.2f", f)
	case f < 100:
		return fmt.Sprintf("%.1f", f)
	default:
		return fmt.Sprintf("%.0f", f)
	}
}

// Fill breaks lines of text at spaces so that they have at most width characters. Words that are longer
// stay whole, and so do lines that begin with a space, which are code.
func Fill(text string, width int) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		if strings.HasPrefix(line, " ") {
			b.WriteString(line)
			continue
		}
		at := 0
		for word := range strings.SplitSeq(line, " ") {
			n := utf8.RuneCountInString(word)
			switch {
			case at == 0:
			case at+1+n > width:
				b.WriteByte('\n')
				at = 0
			default:
				b.WriteByte(' ')
				at++
			}
			b.WriteString(word)
			at += n
		}
	}
	return b.String()
}

// Seconds gives ns as seconds: "3.10 s".
func Seconds(ns uint64) string { return fmt.Sprintf("%.2f s", float64(ns)/1e9) }

// Ratio is a/b, or 0 where b is.
func Ratio(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
