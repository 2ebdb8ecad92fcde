package text

import (
	"fmt"
	"strconv"
	"strings"
)

// Percent gives a fraction with one decimal, in six columns; what is not zero
// never shows as zero.
func Percent(f float64) string {
	switch {
	case f == 0:
		return "    . "
	case f < 0.0005:
		return " <0.1%"
	default:
		return fmt.Sprintf("%5.1f%%", f*100)
	}
}

// percent is Percent without padding.
func percent(f float64) string {
	if f == 0 {
		return "0%"
	}
	return strings.TrimSpace(Percent(f))
}

// Quantity gives a weight in its unit, as people say it: "12.04 s", "3.20 GiB",
// "24.1 Gcycles". The unit is the log's, and made visible text.
func Quantity(w uint64, unit string) string {
	switch unit {
	case "ns":
		return Duration(w)
	case "bytes":
		return Bytes(w)
	case "":
		return scaled(float64(w), "")
	default:
		return scaled(float64(w), fit(unit, 16))
	}
}

// Duration gives ns in the unit that fits.
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

// Count gives a number with its thousands set apart.
func Count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// plural gives a count with its noun.
func plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}
