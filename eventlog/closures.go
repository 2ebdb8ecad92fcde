package eventlog

// This file holds the events about what is allocated, by closure: samples of the nursery's
// blocks, as they are when a collection begins. Nothing of what closures hold is in the log.

// Closure is an info table that closures in sampled blocks have: a constructor, the code of a
// thunk or function, or a type of the run-time system's own.
type Closure struct {
	ID     uint32 // from 1
	Module uint32
	Addr   uint64 // info pointer, as a module address
	Type   uint32 // GHC's number of the closure type
	// Name is the description of a constructor, "containers-0.6.4.1:Data.Map.Internal.Bin".
	Name string
}

// ClosureCount is what a block holds of one closure.
type ClosureCount struct {
	Closure uint32 // Closure.ID; 0 is for bytes that could not be read as closures
	Count   uint32
	Bytes   uint32
}

// NurseryBlock is a block of a nursery that was chosen at random when a collection began. It
// stands for so many blocks as there are places that could have been chosen.
type NurseryBlock struct {
	PID        uint32
	Capability uint32
	// Places is the number of places among which the block was chosen, in all collections for
	// which it stands.
	Places uint64
	// Total is how many bytes the capability had allocated, large objects included, since the
	// process began.
	Total uint64
	// Used is how many bytes of the block are allocated. Read of them are in Closures; all but
	// for a block that is longer than what is copied.
	Used, Read uint64
	Closures   []ClosureCount
}

func (*Closure) EventID() uint16      { return IDClosure }
func (*NurseryBlock) EventID() uint16 { return IDNurseryBlock }

func (e *Closure) layout(c *codec) {
	c.v32(&e.ID)
	c.v32(&e.Module)
	c.v64(&e.Addr)
	c.v32(&e.Type)
	c.str(&e.Name)
}

func (e *NurseryBlock) layout(c *codec) {
	c.v32(&e.PID)
	c.v32(&e.Capability)
	c.v64(&e.Places)
	c.v64(&e.Total)
	c.v64(&e.Used)
	c.v64(&e.Read)
	list(c, &e.Closures, 3)
	for i := range e.Closures {
		c.v32(&e.Closures[i].Closure)
		c.v32(&e.Closures[i].Count)
		c.v32(&e.Closures[i].Bytes)
	}
	c.done()
}
