package eventlog

// SearchEvent is the event of values that stand for non-determinism in functional-logic programs: choices, variables, guards and
// failures. Its samples have the constructor's info table as their leaf, and stand for values that were made: as a return frame where the values of their place are
// counted by the return address on top of the stack, which the frame behind the place's has, else as code.
const SearchEvent = "search"

// SearchWindow is a stretch of time in which a process's values that stand for non-determinism were counted. Its time is the stretch's end.
type SearchWindow struct {
	PID uint32
	// Places is how many instructions make such values, Unknown how many more may make some that were not counted.
	Places, Unknown uint32
	// LengthNs is the CPU time in which they were counted, StandsNs that of the stretch, of all processes: equal, or a length of 0 where nothing was
	// counted.
	LengthNs, StandsNs uint64
	// Made is how many values were made, Sampled how many samples there are of them: if they are equal each value has its own.
	Made, Sampled uint64
	// Late is 1 of a process that began during the capture: it may have made values before its probes were in place.
	Late uint32
}

func (*SearchWindow) EventID() uint16 { return IDSearchWindow }

func (e *SearchWindow) layout(c *codec) {
	c.v32(&e.PID)
	c.v32(&e.Places)
	c.v32(&e.Unknown)
	c.v64(&e.LengthNs)
	c.v64(&e.StandsNs)
	c.v64(&e.Made)
	c.v64(&e.Sampled)
	c.v32(&e.Late)
}
