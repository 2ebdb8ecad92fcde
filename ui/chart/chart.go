// Package chart computes stacked bands and strips as cells: pure functions from
// series to what each cell shows, shared by the viewer and its text twins.
package chart

import (
	"math"
	"strings"

	"ccagent/profile/timeline"
)

// What a cell of a chart shows besides a band's number.
const (
	Empty = -1 // above all bands
	Other = -2 // the bands that have no number of their own
)

// Bands stacks a series' rows into height lines of cells, the top line first,
// scaled so that limit bytes reach the top. The first row lies at the bottom. A
// bucket with anything in it has at least one cell.
func Bands(s *timeline.HeapSeries, height int, limit uint64) [][]int {
	cells := make([][]int, height)
	for y := range cells {
		cells[y] = make([]int, len(s.Total))
	}
	per := float64(limit) / float64(max(1, height))
	for x := range s.Total {
		for y := range height {
			low := float64(height-1-y) * per
			cells[y][x] = fills(s, x, low, low+per)
		}
		if bottom := height - 1; height > 0 && s.Total[x] > 0 && cells[bottom][x] == Empty {
			cells[bottom][x] = fills(s, x, 0, float64(s.Total[x]))
		}
	}
	return cells
}

// fills is what takes up most of a bucket between two heights, if that is filled
// at least by half.
func fills(s *timeline.HeapSeries, x int, low, high float64) int {
	best, most, sum, filled := Empty, 0.0, 0.0, 0.0
	add := func(cell int, bytes uint64) {
		part := min(sum+float64(bytes), high) - max(sum, low)
		sum += float64(bytes)
		if part > 0 {
			filled += part
			if part > most {
				best, most = cell, part
			}
		}
	}
	for i := range s.Rows {
		add(i, s.Rows[i].Bytes[x])
	}
	add(Other, s.Other[x])
	if 2*filled < high-low {
		return Empty
	}
	return best
}

// Letters name bands by their position.
const Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// Letter is the sign of a cell.
func Letter(cell int) string {
	switch {
	case cell == Other:
		return "."
	case cell < 0:
		return " "
	case cell < len(Letters):
		return Letters[cell : cell+1]
	}
	return "."
}

// Limit is the least round number of bytes that is at least v: axes end on it.
func Limit(v uint64) uint64 {
	if v == 0 {
		return 1
	}
	unit := math.Pow(1024, math.Floor(math.Log(float64(v))/math.Log(1024)))
	for _, m := range []float64{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512, 640, 768, 1024} {
		if l := m * unit; l >= float64(v) {
			return uint64(l)
		}
	}
	return v
}

var steps = []rune(" ▁▂▃▄▅▆▇█")

// Levels draws a series against its own peak, a character a value.
func Levels(v []uint64) string {
	top := Peak(v)
	var b strings.Builder
	for _, x := range v {
		switch {
		case x == 0 || top == 0:
			b.WriteRune(' ')
		default:
			b.WriteRune(steps[1+int(float64(x)/float64(top)*float64(len(steps)-2)+0.5)])
		}
	}
	return b.String()
}

// NotWatched stands in a line for a column of which nobody knows what happened.
const NotWatched = '╌'

// Broken puts NotWatched into the columns of a line that were not watched.
func Broken(line string, unwatched []bool) string {
	columns := []rune(line)
	for i, not := range unwatched {
		for i >= len(columns) {
			columns = append(columns, ' ')
		}
		if not {
			columns[i] = NotWatched
		}
	}
	return string(columns)
}

// Peak is the largest value, or 0.
func Peak(v []uint64) uint64 {
	var m uint64
	for _, x := range v {
		m = max(m, x)
	}
	return m
}

// Sum is that of all values.
func Sum(v []uint64) uint64 {
	var t uint64
	for _, x := range v {
		t += x
	}
	return t
}
