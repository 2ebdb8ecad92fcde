package rewrite

import (
	"cmp"
	"slices"
)

// stretch is a stretch of time, ns.
type stretch struct{ from, to uint64 }

// coverage is what a log's capture was under way for, in the log's time: it may be one of several
// captures itself.
type coverage struct{ parts []stretch }

// at notes that a capture was under way at a time. Events are not in order.
func (c *coverage) at(time uint64) {
	if len(c.parts) == 0 {
		c.parts = []stretch{{time, time}}
	}
	first, last := &c.parts[0], &c.parts[len(c.parts)-1]
	first.from, last.to = min(first.from, time), max(last.to, time)
}

// maxHoles bounds the holes of one log.
const maxHoles = 1 << 12

// hole notes a stretch in which none was. Holes come in order, after what was captured.
func (c *coverage) hole(from, to uint64) {
	if len(c.parts) == 0 || len(c.parts) > maxHoles {
		return
	}
	last := &c.parts[len(c.parts)-1]
	if from <= last.from || to <= from || to > last.to {
		return
	}
	rest := stretch{to, last.to}
	last.to = from
	c.parts = append(c.parts, rest)
}

// leastHole is the shortest stretch without a capture that is one: a daemon's pieces of one process
// follow each other at once, but for a moment.
const leastHole = 1e9

// holes returns the stretches between the first and the last capture of the merged log in which none
// was under way, in its time and within its range. A run-time system's log has none.
func (rw *rewriter) holes() (out []stretch) {
	var all []stretch
	for i := range rw.logs {
		l := &rw.logs[i]
		if l.rts {
			return nil
		}
		for _, p := range l.covers.parts {
			all = append(all, stretch{p.from + l.shift, p.to + l.shift})
		}
	}
	slices.SortFunc(all, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
	covered := uint64(0)
	for i, s := range all {
		if i > 0 && s.from >= covered+leastHole && len(out) < maxHoles {
			h := stretch{max(covered, rw.o.Range.From), rw.clamp(s.from)}
			if h.from < h.to {
				out = append(out, h)
			}
		}
		covered = max(covered, s.to)
	}
	return out
}
