package eventlog

// Sparks is what has become of the sparks of all capabilities since the capture began, by the end of a collection. The standard's
// SparkCounters are of one capability, and of the program's whole life.
type Sparks struct {
	Created    uint64 // that went into a pool
	Dud        uint64 // of what was a value already
	Overflowed uint64 // that found their pool full
	Converted  uint64 // that a thread for sparks has evaluated
	Collected  uint64 // that nothing needed any more
	Fizzled    uint64 // that were evaluated before they ran
}

func (*Sparks) EventID() uint16 { return IDSparks }

func (e *Sparks) layout(c *codec) {
	c.v64(&e.Created)
	c.v64(&e.Dud)
	c.v64(&e.Overflowed)
	c.v64(&e.Converted)
	c.v64(&e.Collected)
	c.v64(&e.Fizzled)
}
