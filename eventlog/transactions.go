package eventlog

// This file holds what is counted of software transactional memory.

// TransactionEnd is how an attempt to run a transaction has ended.
type TransactionEnd uint8

const (
	TransactionCommitted TransactionEnd = iota
	TransactionFailed                   // others have changed what it has read: its work is thrown away, and it begins again
	TransactionRetried                  // by retry: it waits until a variable changes that it has read
	TransactionThrown                   // an exception has left it
	TransactionEnds
)

var transactionEndNames = [TransactionEnds]string{"committed", "failed validation", "retried", "exception"}

// String gives the name shown to users and used in JSON.
func (e TransactionEnd) String() string {
	if e < TransactionEnds {
		return transactionEndNames[e]
	}
	return "unknown"
}

// TransactionWindow is a stretch of time in which all attempts to run a transaction were counted that ended in a
// process. Its time is the stretch's end.
type TransactionWindow struct {
	PID uint32
	// LengthNs is the CPU time that the processes used in it, StandsNs that for which it stands: since the end of the stretch
	// before, and more if no other follows. They are equal where attempts are counted all the time. A length of 0 is
	// time for which nothing was counted.
	LengthNs, StandsNs uint64
	// SlowedNs is how much of it the hits of probes took: what the program did not get on. It is 0 where what was counted
	// stands for no more than itself.
	SlowedNs uint64
	// Begun is how many transactions began in it, by the run-time system's own count, and BegunStands in the time for which it
	// stands; 0 where it has no count. Nested ones (orElse, catchSTM) are among them.
	Begun, BegunStands uint64
	// Ends are the attempts that ended, by how they did.
	Ends [TransactionEnds]uint64
	// Noted are the samples of CPU time that were taken inside of transactions, Sampled those of them of which it is
	// known how the attempt has ended.
	Noted   uint64
	Sampled [TransactionEnds]uint64
}

func (*TransactionWindow) EventID() uint16 { return IDTransactionWindow }

func (e *TransactionWindow) layout(c *codec) {
	c.v32(&e.PID)
	c.v64(&e.LengthNs)
	c.v64(&e.StandsNs)
	c.v64(&e.SlowedNs)
	c.v64(&e.Begun)
	c.v64(&e.BegunStands)
	for i := range e.Ends {
		c.v64(&e.Ends[i])
	}
	c.v64(&e.Noted)
	for i := range e.Sampled {
		c.v64(&e.Sampled[i])
	}
}

// MaxTransactionVariables is how many variables a chunk of an attempt's record has room for.
const MaxTransactionVariables = 16

// TransactionVariables is an attempt to run a transaction that was sampled when it ended: one that failed, or one that committed and
// wrote variables. The run-time system keeps the last chunk of an attempt's record of entries, so variables are known of the up to 16
// that it touched last.
type TransactionVariables struct {
	PID      uint32
	End      TransactionEnd // failed or committed
	Attempts uint64         // for how many it stands
	Node     uint32         // its stack, as that of its sample
	// Variables are, of a failed attempt, those that had another value than it had read: none if that is not known. Of one that
	// committed, those that it wrote.
	Variables []TransactionVariable
}

// TransactionVariable is a variable that an attempt touched.
type TransactionVariable struct {
	Address uint64 // at that moment: collections move variables
	Place   uint8  // in the chunk of entries, in which variables are in the order in which they were touched first
}

func (*TransactionVariables) EventID() uint16 { return IDTransactionVariables }

func (e *TransactionVariables) layout(c *codec) {
	c.v32(&e.PID)
	enum(c, &e.End)
	c.v64(&e.Attempts)
	c.v32(&e.Node)
	list(c, &e.Variables, 2)
	for i := range e.Variables {
		c.v64(&e.Variables[i].Address)
		c.u8(&e.Variables[i].Place)
	}
	c.done()
}
