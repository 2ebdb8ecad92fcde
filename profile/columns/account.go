package columns

// Accounting counts what of a log could not be used.
type Accounting struct {
	Bytes int64 // of the log
	// Complete is set when the log has its end marker.
	Complete bool
	// Growing is set when the log is still being written.
	Growing bool
	// Malformed is the number of damaged stretches, Passed their bytes, and
	// Damage the first of them.
	Malformed int
	Passed    int64
	Damage    []Damage
	// Unknown counts events of kinds that this program does not know.
	Unknown uint64
	// Undefined counts references to what was never defined.
	Undefined Undefined
	// Redefined counts definitions of ids that were defined before, or of stack
	// nodes out of order; the first definition holds.
	Redefined uint64
	// Dropped counts samples that could not be kept at all.
	Dropped uint64
	// DroppedText is the bytes of source text beyond what a viewer should hold.
	DroppedText uint64
}

// Damage is a stretch of the log that was not what it should be.
type Damage struct {
	Offset, Length int64
	Reason         string
}

// Undefined counts references to what was never defined, by what was referred to.
type Undefined struct {
	Events, Nodes, Parents, Bindings, Spans, Files, Blocks, Cores uint64
}

// Sum is the number of all dangling references.
func (u *Undefined) Sum() uint64 {
	return u.Events + u.Nodes + u.Parents + u.Bindings + u.Spans + u.Files + u.Blocks + u.Cores
}

// maxDamage bounds Accounting.Damage.
const maxDamage = 32
