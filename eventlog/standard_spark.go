package eventlog

// This file holds the events of sparks: expressions offered for parallel
// evaluation.

// Events without fields.
type (
	SparkCreate   struct{}
	SparkDud      struct{} // was evaluated already
	SparkOverflow struct{} // the pool was full
	SparkRun      struct{}
	SparkFizzle   struct{} // was evaluated before it ran
	SparkGC       struct{} // was collected unused
)

// SparkSteal reports that a spark was taken from another capability.
type SparkSteal struct{ Victim uint16 }

// CreateSparkThread reports that a thread was created to run sparks.
type CreateSparkThread struct{ Thread uint32 }

// SparkCounters are a capability's totals.
type SparkCounters struct {
	Created, Dud, Overflowed, Converted, Collected, Fizzled, Remaining uint64
}

func (*SparkCreate) EventID() uint16       { return IDSparkCreate }
func (*SparkDud) EventID() uint16          { return IDSparkDud }
func (*SparkOverflow) EventID() uint16     { return IDSparkOverflow }
func (*SparkRun) EventID() uint16          { return IDSparkRun }
func (*SparkFizzle) EventID() uint16       { return IDSparkFizzle }
func (*SparkGC) EventID() uint16           { return IDSparkGC }
func (*SparkSteal) EventID() uint16        { return IDSparkSteal }
func (*CreateSparkThread) EventID() uint16 { return IDCreateSparkThread }
func (*SparkCounters) EventID() uint16     { return IDSparkCounters }

func (*SparkCreate) layout(*codec)   {}
func (*SparkDud) layout(*codec)      {}
func (*SparkOverflow) layout(*codec) {}
func (*SparkRun) layout(*codec)      {}
func (*SparkFizzle) layout(*codec)   {}
func (*SparkGC) layout(*codec)       {}

func (e *SparkSteal) layout(c *codec)        { c.u16(&e.Victim) }
func (e *CreateSparkThread) layout(c *codec) { c.u32(&e.Thread) }

func (e *SparkCounters) layout(c *codec) {
	c.u64(&e.Created)
	c.u64(&e.Dud)
	c.u64(&e.Overflowed)
	c.u64(&e.Converted)
	c.u64(&e.Collected)
	c.u64(&e.Fizzled)
	c.u64(&e.Remaining)
}
