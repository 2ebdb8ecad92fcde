package eventlog

// This file holds the events that a capture writes while it runs. All of them
// are private to this project: ids from 1000 up, declared in the log's header,
// which every other reader skips by the declaration alone.
//
// Payloads are LEB128 varints, length-prefixed strings and lists, in the order of the
// struct's fields. Later versions may append fields; a reader ignores the fields that it
// does not know and sets absent trailing fields to zero.

// CaptureMode is how the target came to be profiled.
type CaptureMode uint8

const (
	CaptureRecord CaptureMode = iota // started by the agent, followed from its first instruction
	CaptureAttach                    // was running already
)

// Capture is the first event of a capture: what was profiled, where.
type Capture struct {
	AgentVersion string
	Mode         CaptureMode
	StartUnixNs  uint64 // wall clock at log time 0
	PID          uint32
	UID          uint32
	Program      string // path as the kernel resolved it
	Args         []string
	GHCVersion   string // "9.0.2"; empty if the program is not Haskell or its version is unknown
	Way          string // "rts_thr"; empty as above
	// LayoutAssumed is set when the heap layout used by the walker was not
	// derived from a version this project knows.
	LayoutAssumed bool
	Kernel        string // uname release
	Arch          string // GOARCH
	CPUModel      string
	CPUs          uint32
	// TargetIDs are the ids of the program's own user: uid, gid and further groups. Empty
	// in logs of earlier versions.
	TargetIDs []uint32
	// Labels say where the program ran and what it serves. Empty in logs of earlier versions.
	Labels []Label
}

// Label is an attribute of a captured process, named as OpenTelemetry's semantic conventions name
// it: host.name, service.name, container.id, ….
type Label struct {
	Key, Value string
}

// Names of labels.
const (
	LabelHost    = "host.name"
	LabelService = "service.name"
)

// Label returns the value of a label, empty if the capture does not have it.
func (e *Capture) Label(key string) string {
	for _, l := range e.Labels {
		if l.Key == key {
			return l.Value
		}
	}
	return ""
}

// RateMode is the unit of EventDef.Rate.
type RateMode uint8

const (
	RateFrequency RateMode = iota // Rate is in samples a second
	RatePeriod                    // Rate is in units of the event a sample
)

// EventDef declares one sampled event. Samples refer to it by Index.
type EventDef struct {
	Index     uint32
	Requested string // as the user named it: "cycles"
	Granted   string // what the kernel counts: "cpu-clock"
	Fallback  string // why Granted differs from Requested; empty when it does not
	Unit      string // of Sample.Weight: "cycles", "ns", "bytes", …
	RateMode  RateMode
	Rate      uint64
}

// EventTitle names an event for readers, by what was asked for and what was counted: "cycles
// (cpu-clock)". No text names one in another way; where there is no room, what was asked for stands
// alone.
func EventTitle(requested, granted string) string {
	if granted == "" || granted == requested {
		return requested
	}
	return requested + " (" + granted + ")"
}

// Title is the event's [EventTitle].
func (e *EventDef) Title() string { return EventTitle(e.Requested, e.Granted) }

// Module is one file of code that was mapped into a profiled process.
// Addresses in the log are relative to their module: the ELF's own virtual
// addresses, so that they mean the same in every process and every run.
type Module struct {
	ID         uint32 // from 1; module 0 stands for "no file" and keeps absolute addresses
	Path       string
	BuildID    []byte // GNU build-id; empty if the file has none
	Size       uint64 // bytes, to detect a replaced file
	ModTime    int64  // Unix ns, likewise
	GHCVersion string // of the code's compiler or of the RTS linked in; empty if none is seen
}

// Mapping says where a module's code lay in a process from this moment on.
type Mapping struct {
	PID    uint32
	Module uint32
	Start  uint64 // run-time address of the first byte
	End    uint64 // one past the last
	Bias   uint64 // run-time address − module address, modulo 2^64
}

// ProcessChange is the kind of a Process event.
type ProcessChange uint8

const (
	ProcessSeen ProcessChange = iota // was there when the capture began
	ProcessForked
	ProcessExeced
	ProcessExited
)

// Process is a change in the life of a profiled process.
type Process struct {
	Change ProcessChange
	PID    uint32
	Parent uint32 // for ProcessForked
	Comm   string
	Path   string // executable, for ProcessSeen and ProcessExeced
}

// ThreadName is the label of a process's Haskell thread, in logs of several processes, where GHC's
// ThreadLabel does not say whose thread it names.
type ThreadName struct {
	PID  uint32
	TSO  uint64
	Name string
}

// FrameKind is what an address in a stack is.
type FrameKind uint8

const (
	FramePC          FrameKind = iota // where the sample hit, in user space
	FrameReturn                       // an STG return frame's info pointer: case continuation or other RET_SMALL/RET_BIG
	FrameUpdate                       // update frame: a thunk's forcing begins here
	FrameCatch                        // catch frame
	FrameSTM                          // atomically, catch_retry and catch_stm frames
	FrameRetFun                       // RET_FUN: a function call suspended by the RTS
	FrameRetBCO                       // interpreter's continuation
	FrameUnderflow                    // boundary to the next stack chunk
	FrameStop                         // the stack's bottom
	FrameC                            // return address in C code; one past the call
	FrameKernel                       // kernel address, absolute, module 0
	FrameSkipped                      // no address: here Sample.SkippedWords of the stack are left out
	FrameContext                      // no address: frames rootwards are the thread's context, not callers
	FrameAnn                          // ANN_FRAME of GHC ≥ 9.14
	FrameFolded                       // no address: the Addr frames leafwards repeat here; Sample.FoldedFrames counts all such
	FrameWait                         // no address: the leaf of a thread that waits; Addr is its ThreadState
	FrameTransaction                  // no address: the leaf of an attempt to run a transaction that has ended; Addr is its TransactionEnd
)

// HasAddress reports whether a frame is at an address.
func (k FrameKind) HasAddress() bool {
	return k != FrameSkipped && k != FrameContext && k != FrameFolded && k != FrameWait && k != FrameTransaction
}

// Node is one stack prefix: a frame on top of its parent (towards the root).
type Node struct {
	Parent uint32 // node id; 0 is the empty stack
	Kind   FrameKind
	Module uint32
	Addr   uint64
}

// Nodes defines the stack nodes First, First+1, … Every node is defined before
// a sample or another node refers to it.
type Nodes struct {
	First uint32 // from 1
	Nodes []Node
}

// SampleFlags qualify a sample.
type SampleFlags uint16

const (
	SampleInKernel   SampleFlags = 1 << iota // the event hit while the kernel ran for the thread
	SampleTopScanned                         // the top frame was found by scanning, not by CFI
	SampleTopCFI                             // the top frame was found by CFI
	SampleViaC                               // reached the Haskell stack by unwinding C frames
	SampleContext                            // the Haskell part is context only (see FrameContext)
	SampleFolded                             // repeated frames were folded in the record

	SampleInTransaction SampleFlags = 1 << 8 // the thread was inside of a transaction
)

// StopReason says why the walk of a sample's stack ended. Every sample has one.
type StopReason uint8

const (
	StopRoot            StopReason = iota // reached the STOP frame
	StopRecovered                         // frame budget spent; the root-most frames follow a FrameSkipped
	StopBudget                            // frame budget spent, root not recovered
	StopNoHaskell                         // the registers hold no Haskell context
	StopTopAmbiguous                      // no return frame at or near the stack's top
	StopUnreadableStack                   // stack memory could not be read
	StopUnreadableInfo                    // an info table could not be read
	StopImplausibleInfo                   // a word in a frame's place is no info pointer
	StopOutsideChunk                      // a frame reaches beyond its stack chunk
	StopUnreadableTSO                     // in Haskell code, but no thread object that has this stack could be read
	StopChunkLimit                        // more stack chunks than the walker follows
	StopUnknownFrame                      // a word in a frame's place is the info pointer of something else, or of a future kind of frame
	StopCUnwind                           // C frames could not be unwound further
	StopNoUserContext                     // the task has no user-space registers (exiting, kernel thread)
	StopMoved                             // the thread ran on while its memory was read: why it waited is known, its stack is not
	stopReasons
)

// Complete reports whether the stack's root is known.
func (s StopReason) Complete() bool { return s == StopRoot || s == StopRecovered }

// Truncated reports whether frames are missing because a budget was spent.
func (s StopReason) Truncated() bool { return s == StopBudget || s == StopChunkLimit }

var stopNames = [stopReasons]string{
	"root", "root-recovered", "frame-budget", "no-haskell-context", "ambiguous-top", "unreadable-stack",
	"unreadable-info-table", "implausible-info-table", "outside-chunk", "unreadable-tso", "chunk-limit",
	"unknown-frame", "c-unwind", "no-user-context", "moved",
}

// String gives the name shown to users and used in JSON.
func (s StopReason) String() string {
	if s < stopReasons {
		return stopNames[s]
	}
	return "unknown"
}

// NoCapability is Sample.Capability where no capability is known.
const NoCapability = 0xffff

// Sample is one sample of one event. Its time is the event's own.
type Sample struct {
	Event uint32 // EventDef.Index
	CPU   uint32
	PID   uint32
	TID   uint32 // kernel thread
	// Capability is that on which the Haskell thread runs, or which the OS thread holds in the
	// scheduler or the garbage collector; NoCapability otherwise, as in a safe foreign call.
	// Logs of earlier versions have no capability for the scheduler and the collector.
	Capability uint32
	TSO        uint64 // Haskell thread id; 0 = none
	Weight     uint64 // in EventDef.Unit
	Node       uint32 // leaf; 0 = no frame at all
	Stop       StopReason
	Flags      SampleFlags
	// SkippedWords counts the stack's words where a FrameSkipped stands.
	SkippedWords uint64
	// FoldedFrames counts the frames left out where FrameFolded stand.
	FoldedFrames uint32
	// Centres is the CentreStack that was running; 0 = none is known.
	Centres uint32
}

// LossReason is why records were lost.
type LossReason uint8

const (
	LossRingFull  LossReason = iota // the BPF ring buffer was full
	LossThrottled                   // the kernel throttled the event
	LossNested                      // an event hit while the walker ran on that CPU
	LossDecode                      // a record from the kernel could not be decoded
	LossWait                        // a wait whose beginning or end was not recorded
	LossSideBand                    // side-band records of mappings, execs and forks were lost
	LossUnread                      // threads that could not be read when it was time to, as during a collection
	LossUnwritten                   // the log could not be written for too long
)

// Loss counts samples that were not recorded, since the previous Loss event of
// the same CPU and reason.
type Loss struct {
	CPU    uint32
	Event  uint32 // EventDef.Index
	Reason LossReason
	Count  uint64
}

// AgentCost is the cost of measuring since the capture began.
type AgentCost struct {
	CPUNs   uint64 // user and system time of the agent
	RSS     uint64 // bytes, peak
	BPFRuns uint64
	BPFNs   uint64 // time in BPF; 0 if the kernel does not measure it
	Samples uint64 // samples written so far
	// TargetCPUNs is the user and system time of the target while it was captured; 0 if
	// unknown.
	TargetCPUNs uint64
	// WalkMedianNs and WalkP99Ns are the time that the walk of one sample took.
	WalkMedianNs uint64
	WalkP99Ns    uint64
}

// Overhead is the cost of measuring to the target in an interval, and the density of
// sampling. It is written about once a second, for the interval since the previous one.
// Fractions are in millionths.
type Overhead struct {
	IntervalNs uint64
	// TargetNs is the target's CPU time in the interval; 0 if unknown.
	TargetNs uint64
	// EventNs is the time in BPF at overflows of events and at waits, and of probes at collections
	// and switches of Haskell threads; AllocNs is that of allocation probes. Both of probes include
	// the traps into the kernel. All are CPU time of the target, as is
	// InterruptNs below.
	EventNs uint64
	AllocNs uint64
	AgentNs uint64 // CPU time of the agent
	// Asked is the part of the target's time that measuring may take (--max-overhead), 0 for
	// no limit.
	Asked uint32
	// EventsTaken is the part of the overflows that are sampled. A sample's weight includes
	// those that were skipped.
	EventsTaken uint32
	// Nursery, Blocks and Large are the parts of the interval in which the probes at full
	// nurseries, at every block of 4 KiB, and at large objects were in place.
	Nursery uint32
	Blocks  uint32
	Large   uint32
	// ProbeHits is the number of hits of probes, ProbeNs the cost of a hit outside BPF, on average
	// of the kinds of probes, each as measured when the capture began.
	ProbeHits uint64
	ProbeNs   uint32
	// InterruptNs is the time of the interrupts at overflows outside BPF, and Interrupts
	// their number: the number times the cost of one, as measured when the capture began.
	InterruptNs uint64
	Interrupts  uint64
}

// Warning is a message to the user during the capture: what could not be done, and what was
// done instead.
type Warning struct {
	Text string
}

// EndReason is why a capture ended.
type EndReason uint8

const (
	EndExited      EndReason = iota // the target ended
	EndDuration                     // --duration passed
	EndInterrupted                  // the user asked
	EndFailed                       // the agent failed; CaptureEnd.Detail has the error
	EndRotated                      // the capture goes on in another log
)

// CaptureEnd ends the sampling part of a log. A log without it was cut off.
type CaptureEnd struct {
	Reason     EndReason
	Detail     string
	ExitStatus uint32 // the program's, as a shell shows it (128 + signal)
	HaveStatus bool
}

// RTSProbes reports on one group of probes in the run-time system's code, from which the
// log's standard events of GCs and threads come. The last event of a group has the sums
// since the capture began.
type RTSProbes struct {
	Group   string // "gc" or "threads"
	Problem string // why there are none; empty if there are
	Sites   uint32 // instructions probed
	Hits    uint64
	Records uint64 // written to the log
	Dropped uint64 // not written: rate limit reached, or ring buffer full
	CostNs  uint64 // estimated cost of the hits to the program
	// OutNs is how long the probes were detached to keep within the budget.
	OutNs uint64
	// Missed is the number of GCs in that time, by the run-time system's own count.
	Missed uint64
}

// RTSWatch reports that from its time on all hits of a group of probes are recorded, or that they
// are not: the probes are out, or hits were dropped. The standard events of the group are whole
// where it is watched. Elsewhere there is none to draw a conclusion from: a capability without
// events was not idle, but not watched. Before a group's first RTSWatch it was not watched; in
// logs without any of a group RTSProbes.OutNs is for how long it was not.
type RTSWatch struct {
	Group   string // as in RTSProbes
	Watched bool
}

// Unrecorded reports that the log says nothing of the Ns nanoseconds before its time: it is of
// several captures, and none was under way. The program was not idle then, but not watched.
type Unrecorded struct{ Ns uint64 }

// OwnMarker begins the text of user markers that are ours and not the program's. They are
// for readers that skip our events.
const OwnMarker = "ccagent: "

// EventRate is a change of an event's rate, valid until the next one: the rate of its
// EventDef would take more of the target's time than Overhead.Asked allows.
type EventRate struct {
	Event uint32 // EventDef.Index
	Rate  uint64 // as EventDef.RateMode says
	// InterruptNs and SampleNs are the reason: the cost of one interrupt of the event, and
	// of one sample in addition.
	InterruptNs uint32
	SampleNs    uint32
}

// EventCount is the count of an event since the capture began. If RunningNs is less than
// EnabledNs, events took turns on the counters, and the weights of samples are scaled by the
// quotient.
type EventCount struct {
	Event     uint32 // EventDef.Index
	Value     uint64 // as counted, not scaled; in EventDef.Unit
	EnabledNs uint64 // CPU time of the threads
	RunningNs uint64 // the part of EnabledNs in which the event was on a counter
}

// SamplingMethod is how an event is sampled.
type SamplingMethod uint8

const (
	MethodUnknown   SamplingMethod = iota
	MethodOnCPUs                   // an event on each CPU; hits in other processes are passed over
	MethodOnThreads                // an event on each thread of the target, inherited by new ones
	MethodTick                     // the kernel's tick, and an event on each CPU that is not in step with it
)

// Sampling describes how an event is sampled, and what is known of its samples as a whole, since
// the capture began. The last one of an event is the one that counts.
type Sampling struct {
	Event  uint32 // EventDef.Index
	Method SamplingMethod
	CPUs   uint32 // on which it is open, for MethodOnCPUs
	Others uint64 // hits in processes that are not the target's
	// CPUNs is the CPU time of the target's threads by the kernel's own count, which the weights
	// of samples are scaled to; 0 for events other than clocks.
	CPUNs uint64
	// UnsampledNs is the part of CPUNs that no sample's weight stands for.
	UnsampledNs uint64
	// InStepNs is the CPU time of threads that were sampled far more or less often than their
	// time would have it: what they do is in step with the sampling. For MethodTick, that of
	// processes whose work is in step with the tick: of these only samples of the event are there.
	InStepNs uint64
	// TotalError is the standard error of the sum of all weights, in the event's unit, where
	// that is an estimate; 0 where it is a count.
	TotalError uint64
	// For MethodTick: how many ticks a second are sampled, the present rate of the event beside
	// them, and the samples at ticks that are left out.
	TickHz, EventHz uint32
	Aside           uint64
	// For waits: for how long threads that are known to wait in calls were off the CPU, without having been preempted, where that was not
	// looked at: between these two. The samples of StateUnwatched stand for it.
	UnwatchedLeastNs, UnwatchedMostNs uint64
}
