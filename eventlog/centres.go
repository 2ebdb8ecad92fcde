package eventlog

// This file holds the events about the cost-centre stacks of samples, in programs of the
// profiling way. GHC's own COST_CENTRE event is not used: its ids belong to the run-time
// system's log, which may be merged with ours, and to the cost-centre profiles that are
// derived from our samples.

// CentreDef defines a cost centre that the program was compiled with.
type CentreDef struct {
	ID                    uint32 // from 1
	Label, Module, SrcLoc string // as the program has them; empty if not readable
	CAF                   bool
}

// CentreProblem is why the stack below a cost-centre stack is not known.
type CentreProblem uint8

const (
	CentreWhole       CentreProblem = iota // no problem: Parent is the stack below, or there is none
	CentreUnreadable                       // the stack, its centre or the stack below could not be read
	CentreImplausible                      // the depth of the stack below is not one less
	CentreTooDeep                          // more centres than the walker follows
	CentreLost                             // the walker's record of it was lost
	centreProblems
)

var centreProblemNames = [centreProblems]string{"whole", "unreadable", "implausible", "too-deep", "untold"}

// String gives the name shown to users and used in JSON.
func (p CentreProblem) String() string {
	if p < centreProblems {
		return centreProblemNames[p]
	}
	return "unknown"
}

// CentreStack defines a cost-centre stack as a centre on another stack. Samples
// and stacks may refer to one that is defined later, or never if its record was
// lost. A log may be crafted: parents can form a cycle.
type CentreStack struct {
	ID      uint32 // from 1
	Parent  uint32 // the stack below; 0 if there is none, or it is not known
	Centre  uint32 // CentreDef.ID; 0 if it is not known
	Problem CentreProblem
}

func (*CentreDef) EventID() uint16   { return IDCentreDef }
func (*CentreStack) EventID() uint16 { return IDCentreStack }

func (e *CentreDef) layout(c *codec) {
	c.v32(&e.ID)
	c.str(&e.Label)
	c.str(&e.Module)
	c.str(&e.SrcLoc)
	c.flag(&e.CAF)
}

func (e *CentreStack) layout(c *codec) {
	c.v32(&e.ID)
	c.v32(&e.Parent)
	c.v32(&e.Centre)
	enum(c, &e.Problem)
}
