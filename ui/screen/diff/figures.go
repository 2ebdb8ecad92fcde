package diff

import (
	"fmt"
	"math"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile/diff"
	"ccagent/ui/printer"
)

// Figure gives a mean weight, or a fraction, as people read it.
func Figure(v float64, norm diff.Normalise, unit string) string {
	if norm == diff.Share {
		return format.Percent(v)
	}
	return printer.Quantity(uint64(math.Round(max(0, v))), unit)
}

// Change gives a difference with its sign; of fractions in percentage points.
func Change(v float64, norm diff.Normalise, unit string) string {
	s := Figure(math.Abs(v), norm, unit)
	if norm == diff.Share {
		s = strings.TrimSuffix(s, "%") + " pt"
	}
	if v < 0 {
		return "−" + s
	}
	return "+" + s
}

// Relative is the change as a part of what A had.
func Relative(r *diff.Row) string {
	switch {
	case r.Delta == 0:
		return "0%"
	case math.IsInf(r.Ratio, 0):
		return "new"
	case r.Ratio <= -1:
		return "gone"
	case math.Abs(r.Ratio) >= 10:
		return fmt.Sprintf("×%.0f", 1+r.Ratio)
	}
	return strings.Replace(fmt.Sprintf("%+.1f%%", 100*r.Ratio), "-", "−", 1)
}

// PValue gives a p-value with three decimals, or - for none.
func PValue(p float64) string {
	switch {
	case math.IsNaN(p):
		return "-"
	case p < 0.001:
		return "<0.001"
	}
	return fmt.Sprintf("%.3f", p)
}
