package columns

// Accounting counts the parts of a log that could not be used.
type Accounting struct {
	Bytes int64 // size of the log
	// Complete is set when the log has its end marker.
	Complete bool
	// Growing is set when the log is still being written.
	Growing bool
	// Malformed is the number of damaged stretches of the log, Passed their size in
	// bytes, and Damage a list of the first of them.
	Malformed int
	Passed    int64
	Damage    []Damage
	// Unknown counts events of types that this version does not know.
	Unknown uint64
	// Undefined counts references to ids that the log never defines.
	Undefined Undefined
	// Redefined counts definitions of an id that already had one, and stack nodes
	// whose ids are out of order. The first definition holds.
	Redefined uint64
	// Dropped counts samples that could not be kept.
	Dropped uint64
	// DroppedText is the number of bytes of source text beyond the limit that the
	// loader keeps.
	DroppedText uint64
}

// Damage is a damaged stretch of the log.
type Damage struct {
	Offset, Length int64
	Reason         string
}

// Undefined counts references to undefined ids, by the kind of thing referred to.
type Undefined struct {
	Events, Nodes, Parents, Bindings, Spans, Files, Blocks, Cores, Closures uint64
}

// Sum is the number of all dangling references.
func (u *Undefined) Sum() uint64 {
	return u.Events + u.Nodes + u.Parents + u.Bindings + u.Spans + u.Files + u.Blocks + u.Cores + u.Closures
}

// maxDamage bounds Accounting.Damage.
const maxDamage = 32

// Gap is a stretch of a log's time of which it says nothing, since it is damaged there, or of
// captures of which none was under way. What happened in it is not known; it is at
// least a sampling interval long.
type Gap struct{ From, To uint64 } // ns

// WhyUnrecorded says why a log has gaps; "" if it has none.
func (l *Log) WhyUnrecorded() string {
	switch {
	case len(l.Gaps) == 0:
		return ""
	case l.Accounting.Malformed > 0:
		return "the log is damaged"
	}
	return "no capture was under way"
}

// Unrecorded returns how much of a stretch of time lies in gaps, in ns.
func (l *Log) Unrecorded(from, to uint64) (ns uint64) {
	for _, g := range l.Gaps {
		if a, b := max(from, g.From), min(to, g.To); a < b {
			ns += b - a
		}
	}
	return ns
}
