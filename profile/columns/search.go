package columns

import "ccagent/eventlog"

// SearchCounts says how a functional-logic program's choices, guards and failures were counted by probes (-e search).
type SearchCounts struct {
	Windows int
	// LengthNs is the CPU time in which they were, StandsNs that of the capture.
	LengthNs, StandsNs uint64
	// Unknown is how many places of a process may have made some that were not counted.
	Unknown uint32
	// Late says that there are processes that may have made some before their probes were in place.
	Late bool
	// Made is how many were counted, Sampled how many samples there are of them.
	Made, Sampled uint64
}

// All reports whether all that were made are counted, but for what those processes have made.
func (c *SearchCounts) All() bool {
	return c.Windows > 0 && c.Unknown == 0 && c.LengthNs >= c.StandsNs
}

func (c *SearchCounts) add(e *eventlog.SearchWindow) {
	c.Windows++
	c.LengthNs, c.StandsNs = SatAdd(c.LengthNs, e.LengthNs), SatAdd(c.StandsNs, e.StandsNs)
	c.Unknown = max(c.Unknown, e.Unknown)
	c.Late = c.Late || e.Late != 0
	c.Made, c.Sampled = SatAdd(c.Made, e.Made), SatAdd(c.Sampled, e.Sampled)
}
