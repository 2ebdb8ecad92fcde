package printer

import (
	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/interval"
)

// sureWidth is the width of a row's interval with the mark before it.
const sureWidth = 6

// tiedMark marks a row whose order after the row above is within noise.
const tiedMark = "≈"

// sures reports whether there is room for intervals.
func (p *Printer) sures() bool { return p.Columns() >= 60 }

// SureHead is the head of the column of intervals; empty where there is no room for it.
func (p *Printer) SureHead() string {
	if !p.sures() {
		return ""
	}
	return PadLeft("±95%", sureWidth)
}

// Sure is the cell of a share's interval, to the right of the share: half its width in
// points, with a mark if the row is tied.
func (p *Printer) Sure(share float64, s profile.Sure) string {
	if !p.sures() {
		return ""
	}
	mark := " "
	if s.Tied {
		mark = tiedMark
	}
	return p.Faint(mark + PadLeft(format.PlusMinus(share, s.PlusMinus(share)), sureWidth-1))
}

// PlusMinus is the cell of the interval of a figure that rows are not ordered by, to the right of
// it, as wide as SureHead.
func (p *Printer) PlusMinus(share float64, i interval.Interval) string {
	return p.Faint(PadLeft(format.PlusMinus(share, i.PlusMinus(share)), sureWidth))
}

// SureNote explains the column of intervals.
func (p *Printer) SureNote(tied bool) {
	switch {
	case !p.sures():
	case tied:
		p.Note("±95%%: how far the share may be off, 95 times in 100, in points; " + tiedMark + " the order after the row above is within noise")
	default:
		p.Note("±95%%: how far the share may be off, 95 times in 100, in points")
	}
}

// SureJSON is the fields that say how sure a row's share is; null where nothing is known of that.
// Documents embed it.
type SureJSON struct {
	Low       *float64 `json:"low"`
	High      *float64 `json:"high"`
	Effective *float64 `json:"effective_samples"`
	Tied      bool     `json:"tied"`
}

// PartsJSON is the fields that say how sure a row's further figures are.
type PartsJSON struct {
	OnlyLow       *float64 `json:"only_low"`
	OnlyHigh      *float64 `json:"only_high"`
	InclusiveLow  *float64 `json:"inclusive_low"`
	InclusiveHigh *float64 `json:"inclusive_high"`
}

// PartsOf gives the fields of a row.
func PartsOf(s profile.SureParts) PartsJSON {
	var j PartsJSON
	j.OnlyLow, j.OnlyHigh = Bounds(s.Only)
	j.InclusiveLow, j.InclusiveHigh = Bounds(s.Inclusive)
	return j
}

// SureOf gives the fields of a row.
func SureOf(s profile.Sure) SureJSON {
	j := SureJSON{Tied: s.Tied}
	j.Low, j.High = Bounds(s.Interval)
	j.Effective = If(j.High != nil, s.Effective)
	return j
}

// Bounds gives an interval's ends for JSON. Both are nil if it was not computed, which gives an
// upper end above 0, or without samples, where it is all from 0 to 1.
func Bounds(i interval.Interval) (low, high *float64) {
	known := i.High > 0 && !(i.Low == 0 && i.High == 1 && i.Effective == 0)
	return If(known, i.Low), If(known, i.High)
}
