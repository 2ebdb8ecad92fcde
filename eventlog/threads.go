package eventlog

// This file holds the events of a thread dump: what every Haskell thread of a process did at
// one moment. Nothing of what threads compute is in the log.

// ThreadDump begins a dump. The events that follow, of the same process, are its own: first what
// threads wait for, then threads, then OS threads.
type ThreadDump struct {
	PID uint32
	// TookNs is how long reading took. PauseNs is for how long the OS threads that ran Haskell code
	// were stopped, the longest time, and Stopped their number; both are 0 if nothing was.
	TookNs, PauseNs uint64
	Stopped         uint32
	Collections     uint64 // of the process so far
	More            bool   // there are threads that are not in the dump
	Notes           []string
	StoodNs         uint64 // for how long they were stopped altogether
}

// ThreadState is what a Haskell thread does.
type ThreadState uint8

const (
	StateRunning   ThreadState = iota // on a capability: Haskell code, or a foreign call marked unsafe
	StateRunnable                     // waits for its turn
	StateMVar                         // takeMVar or putMVar
	StateMVarRead                     // readMVar
	StateBlackHole                    // wants the value of a thunk that another thread evaluates
	StateSTM                          // retry: until a variable changes that it has read
	StateDelay                        // threadDelay, in a program without -threaded
	StateRead                         // waits to read from a file descriptor, likewise
	StateWrite
	StateThrowTo   // until a thread takes its exception
	StateForeign   // a foreign call marked safe
	StateMigrating // to another capability
	StateFinished  // has run to its end, and is not yet collected
	StateDied      // likewise, of an exception
	StateUnknown   // why it waits is none of what is known of this release
	StateUnwatched // of samples of waits: the OS thread was off the CPU, and where was not looked at
	threadStates
)

var threadStateNames = [threadStates]string{
	"running", "runnable", "mvar", "mvar read", "black hole", "stm", "delay", "read", "write", "throwTo", "foreign call",
	"migrating", "finished", "died", "unknown", "not watched",
}

// Waits reports whether a thread in the state waits for something: not for its turn.
func (s ThreadState) Waits() bool {
	return s >= StateMVar && s <= StateForeign || s == StateUnknown
}

// String gives the name shown to users and used in JSON.
func (s ThreadState) String() string {
	if s < threadStates {
		return threadStateNames[s]
	}
	return "unknown"
}

// HaskellThread is a thread of a dump.
type HaskellThread struct {
	TSO        uint64
	Label      string
	State      ThreadState
	Capability uint32 // NoCapability if it is not known
	Bound      bool   // to an OS thread
	TID        uint32 // the OS thread that runs it, or is in a foreign call for it; 0 if not known
	// On is the Blocker that it waits for; 0 for none, or one that could not be read.
	On uint32
	// FD is the file descriptor of StateRead and StateWrite.
	FD uint64
	// Moved is set if the thread ran while it was read: state and stack may not belong together.
	Moved      bool
	Node       uint32 // leaf of its stack; 0: it has none that could be read
	Stop       StopReason
	StackBytes uint64 // of all its chunks
	StackUsed  uint64
	// SkippedWords counts the stack's words where a FrameSkipped stands.
	SkippedWords uint64
}

// BlockerKind is what threads wait for.
type BlockerKind uint8

const (
	BlockerMVar      BlockerKind = iota
	BlockerBlackHole             // a thunk that is being evaluated
	BlockerException             // a thread that is to take an exception
	BlockerSTM                   // the variables that a transaction has read
)

// Blocker is what threads wait for.
type Blocker struct {
	ID      uint32 // from 1, within a dump
	Kind    BlockerKind
	Address uint64 // at that moment
	Full    bool   // an MVar that has a value
	Stood   bool   // it was the same when it was read again, so that its edges held at one moment
	// Owner is the thread that evaluates the thunk, or is to take the exception; 0 if not known.
	Owner uint64
	// Queue are the threads that wait for an MVar, first come first.
	Queue []uint64
	// Holders are threads whose stacks refer to the MVar and that do not wait for it. If
	// Handler is set, one of its handlers of exceptions does.
	Holders []BlockerHolder
	// Variables are the addresses of a transaction's variables, as far as they are kept;
	// Entries is their number.
	Variables []uint64
	Entries   uint32
	// Node is the code that runs for a black hole: where its evaluation goes on when what it demands has its value; 0 if it
	// is not known.
	Node uint32
}

// BlockerHolder is a thread that refers to an MVar.
type BlockerHolder struct {
	TSO     uint64
	Handler bool
}

// OSThreadRole is what an OS thread does for a Haskell thread.
type OSThreadRole uint8

const (
	OSThreadOther OSThreadRole = iota
	OSThreadRuns               // runs it
	OSThreadCalls              // is in a foreign call marked safe for it
	OSThreadBound              // belongs to it, and runs nothing
)

// OSThread is an OS thread of a dump.
type OSThread struct {
	TID   uint32
	Name  string
	State uint8 // a letter, as /proc/PID/stat has it
	Role  OSThreadRole
	TSO   uint64 // the Haskell thread that it works for; 0 for none
}

func (*ThreadDump) EventID() uint16    { return IDThreadDump }
func (*HaskellThread) EventID() uint16 { return IDHaskellThread }
func (*Blocker) EventID() uint16       { return IDBlocker }
func (*OSThread) EventID() uint16      { return IDOSThread }

func (e *ThreadDump) layout(c *codec) {
	c.v32(&e.PID)
	c.v64(&e.TookNs)
	c.v64(&e.PauseNs)
	c.v32(&e.Stopped)
	c.v64(&e.Collections)
	c.flag(&e.More)
	list(c, &e.Notes, 1)
	for i := range e.Notes {
		c.str(&e.Notes[i])
	}
	c.done()
	c.v64(&e.StoodNs)
}

func (e *HaskellThread) layout(c *codec) {
	c.v64(&e.TSO)
	c.str(&e.Label)
	enum(c, &e.State)
	c.v32(&e.Capability)
	c.flag(&e.Bound)
	c.v32(&e.TID)
	c.v32(&e.On)
	c.v64(&e.FD)
	c.flag(&e.Moved)
	c.v32(&e.Node)
	enum(c, &e.Stop)
	c.v64(&e.StackBytes)
	c.v64(&e.StackUsed)
	c.v64(&e.SkippedWords)
}

func (e *Blocker) layout(c *codec) {
	c.v32(&e.ID)
	enum(c, &e.Kind)
	c.v64(&e.Address)
	c.flag(&e.Full)
	c.flag(&e.Stood)
	c.v64(&e.Owner)
	list(c, &e.Queue, 1)
	for i := range e.Queue {
		c.v64(&e.Queue[i])
	}
	c.done()
	list(c, &e.Holders, 2)
	for i := range e.Holders {
		c.v64(&e.Holders[i].TSO)
		c.flag(&e.Holders[i].Handler)
	}
	c.done()
	list(c, &e.Variables, 1)
	for i := range e.Variables {
		c.v64(&e.Variables[i])
	}
	c.done()
	c.v32(&e.Entries)
	c.v32(&e.Node)
}

func (e *OSThread) layout(c *codec) {
	c.v32(&e.TID)
	c.str(&e.Name)
	enum(c, &e.State)
	enum(c, &e.Role)
	c.v64(&e.TSO)
}
