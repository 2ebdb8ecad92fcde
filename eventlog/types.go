package eventlog

import "strings"

// VariableSize is the size of an event type whose events carry their length.
const VariableSize = 0xffff

// maxPayload is the largest payload of an event of variable size.
const maxPayload = 0xffff

// EventType is an event's declaration in the log's header.
type EventType struct {
	ID    uint16
	Size  uint16 // of the payload in bytes, or VariableSize
	Desc  string
	Extra []byte // for extensions of the format; empty so far
}

// Event is one event: a pointer to one of this package's event structs, or
// *Unknown, or, from a Reader only, *Malformed.
type Event interface {
	// EventID is the event's id in the log.
	EventID() uint16
	layout(*codec)
}

// Unknown is an event that the log declares and this package does not know.
type Unknown struct {
	ID      uint16
	Desc    string // from the header
	Payload []byte
}

func (e *Unknown) EventID() uint16 { return e.ID }
func (e *Unknown) layout(c *codec) { c.rest(&e.Payload) }

// ownVersion is the version of this project's own events. It is part of each event's
// declaration in the header, so a log may mix versions. Appending a field to an event does
// not change the version: older readers ignore the field, newer ones set it to zero if
// absent. Any other change raises the version, and a reader returns events of an unknown
// version as Unknown.
const ownVersion = "1"

// Every own event is declared as "ccagent NAME (vVERSION)".
const (
	ownPrefix = "ccagent "
	ownSuffix = " (v" + ownVersion + ")"
)

// kind is what this package knows of an event type.
type kind struct {
	EventType
	// least is the smallest size of a fixed-size event in old logs: those of
	// GHCs before a field was appended.
	least uint16
	own   bool
	make  func() Event
}

func fixed[T any, P interface {
	*T
	Event
}](size uint16, desc string) kind {
	id := P(new(T)).EventID()
	return kind{EventType: EventType{ID: id, Size: size, Desc: desc}, least: size, make: func() Event { return P(new(T)) }}
}

func variable[T any, P interface {
	*T
	Event
}](desc string) kind {
	return fixed[T, P](VariableSize, desc)
}

func own[T any, P interface {
	*T
	Event
}](name string) kind {
	k := fixed[T, P](VariableSize, ownPrefix+name+ownSuffix)
	k.own = true
	return k
}

func (k kind) since(least uint16) kind {
	k.least = least
	return k
}

// kinds is every event this package knows, by ascending id. Descriptions of
// GHC's events are GHC's.
var kinds = []kind{
	fixed[CreateThread](4, "Create thread"),
	fixed[RunThread](4, "Run thread"),
	fixed[StopThread](10, "Stop thread").since(6),
	fixed[ThreadRunnable](4, "Thread runnable"),
	fixed[MigrateThread](6, "Migrate thread"),
	fixed[ThreadWakeup](6, "Wakeup thread"),
	fixed[GCStart](0, "Starting GC"),
	fixed[GCEnd](0, "Finished GC"),
	fixed[RequestSeqGC](0, "Request sequential GC"),
	fixed[RequestParGC](0, "Request parallel GC"),
	fixed[CreateSparkThread](4, "Create spark thread"),
	variable[LogMsg]("Log message"),
	fixed[Startup](2, "Startup"),
	fixed[BlockMarker](14, "Block marker"),
	variable[UserMsg]("User message"),
	fixed[GCIdle](0, "GC idle"),
	fixed[GCWork](0, "GC working"),
	fixed[GCDone](0, "GC done"),
	fixed[CapsetCreate](6, "Create capability set"),
	fixed[CapsetDelete](4, "Delete capability set"),
	fixed[CapsetAssignCap](6, "Add capability to capability set"),
	fixed[CapsetRemoveCap](6, "Remove capability from capability set"),
	variable[RTSIdentifier]("RTS name and version"),
	variable[ProgramArgs]("Program arguments"),
	variable[ProgramEnv]("Program environment variables"),
	fixed[OSProcessPID](8, "Process ID"),
	fixed[OSProcessPPID](8, "Parent process ID"),
	fixed[SparkCounters](56, "Spark counters"),
	fixed[SparkCreate](0, "Spark create"),
	fixed[SparkDud](0, "Spark dud"),
	fixed[SparkOverflow](0, "Spark overflow"),
	fixed[SparkRun](0, "Spark run"),
	fixed[SparkSteal](2, "Spark steal"),
	fixed[SparkFizzle](0, "Spark fizzle"),
	fixed[SparkGC](0, "Spark GC"),
	fixed[WallClock](16, "Wall clock time"),
	variable[ThreadLabel]("Thread label"),
	fixed[CapCreate](2, "Create capability"),
	fixed[CapDelete](2, "Delete capability"),
	fixed[CapDisable](2, "Disable capability"),
	fixed[CapEnable](2, "Enable capability"),
	fixed[HeapAllocated](12, "Total heap memory ever allocated"),
	fixed[HeapSize](12, "Current heap size (number of allocated mblocks)"),
	fixed[HeapLive](12, "Current heap live data"),
	fixed[HeapInfo](38, "Heap static parameters"),
	fixed[GCStats](58, "GC statistics").since(50),
	fixed[GCGlobalSync](0, "Synchronise stop-the-world GC"),
	fixed[TaskCreate](18, "Task create"),
	fixed[TaskMigrate](12, "Task migrate"),
	fixed[TaskDelete](8, "Task delete"),
	variable[UserMarker]("User marker"),
	fixed[HackT9003](0, "Empty event for bug #9003"),
	fixed[MemReturn](16, "The RTS attempted to return heap memory to the OS"),
	fixed[BlocksSize](12, "Report the size of the heap in blocks"),
	variable[PerfName]("perf event name"),
	fixed[PerfCounter](20, "perf event counter"),
	fixed[PerfTracepoint](12, "perf event tracepoint"),
	variable[HeapProfBegin]("Start of heap profile"),
	variable[CostCentre]("Cost-centre definition"),
	fixed[HeapSampleBegin](8, "Start of heap profile sample"),
	variable[HeapSampleStack]("Heap profile cost-centre sample"),
	variable[HeapSampleString]("Heap profile string sample"),
	fixed[HeapSampleEnd](8, "End of heap profile sample"),
	fixed[HeapBioSampleBegin](16, "Start of heap profile (biographical) sample"),
	variable[ProfSample]("Time profile cost-centre stack"),
	fixed[ProfBegin](8, "Start of a time profile"),
	variable[InfoTable]("An IPE entry"),
	variable[UserBinaryMsg]("User binary message"),
	fixed[ConcMarkBegin](0, "Begin concurrent mark phase"),
	fixed[ConcMarkEnd](4, "End concurrent mark phase").since(0),
	fixed[ConcSyncBegin](0, "Begin concurrent GC synchronisation"),
	fixed[ConcSyncEnd](0, "End concurrent mark synchronisation"),
	fixed[ConcSweepBegin](0, "Begin concurrent sweep phase"),
	fixed[ConcSweepEnd](0, "End concurrent sweep phase"),
	fixed[ConcUpdRemSetFlush](2, "Update remembered set flushed"),
	fixed[NonmovingCensus](nonmovingLogSize, "Nonmoving heap census"),
	fixed[NonmovingPruned](8, "The state of nonmoving segment pruning"),
	variable[TickyCounterDef]("Ticky-ticky entry counter definition"),
	fixed[TickyCounterSample](32, "Ticky-ticky entry counter sample"),
	fixed[TickyBeginSample](0, "Ticky-ticky entry counter begin sample"),

	own[Capture]("capture"),
	own[EventDef]("event definition"),
	own[Module]("module"),
	own[Mapping]("mapping"),
	own[Process]("process"),
	own[Nodes]("stack nodes"),
	own[Sample]("sample"),
	own[Loss]("loss"),
	own[AgentCost]("agent cost"),
	own[CaptureEnd]("capture end"),
	own[CentreDef]("cost centre"),
	own[CentreStack]("cost-centre stack"),
	own[Overhead]("overhead"),
	own[Warning]("warning"),
	own[ThreadName]("thread name"),
	own[ModuleSymbols]("module symbols"),
	own[File]("source file"),
	own[FileText]("source text"),
	own[Binding]("binding"),
	own[Span]("source span"),
	own[Block]("block"),
	own[Locations]("locations"),
	own[RTSProbes]("probes of the run-time system"),
	own[Unrecorded]("unrecorded"),
	own[RTSWatch]("watch of the run-time system"),
	own[Sparks]("sparks"),
	own[EventCount]("event count"),
	own[EventRate]("event rate"),
	own[Sampling]("sampling"),
	own[Closure]("closure"),
	own[NurseryBlock]("nursery block"),
	own[ThreadDump]("thread dump"),
	own[HaskellThread]("haskell thread"),
	own[Blocker]("blocker"),
	own[OSThread]("os thread"),
	own[TransactionWindow]("window of transactions"),
	own[TransactionVariables]("variables of a transaction"),
	own[SearchWindow]("window of search"),
	own[HeapGraph]("heap graph"),
	own[HeapBand]("heap band"),
	own[HeapRoot]("heap root"),
	own[HeapBranch]("heap branch"),
	own[HeapPath]("heap path"),
	own[HeapStuck]("heap stuck"),
	own[Footprint]("footprint"),
	own[FootprintPart]("footprint part"),
	own[FootprintPin]("footprint pin"),
	own[FootprintStack]("footprint stack"),
	own[HeapCensus]("heap census"),
	own[HeapSeries]("heap series"),
	own[HeapDraw]("heap draw"),
	own[HeapKinds]("heap kinds"),
	own[Core]("core"),
	own[CoreText]("core text"),
}

var kindOf = func() map[uint16]*kind {
	m := make(map[uint16]*kind, len(kinds))
	for i := range kinds {
		m[kinds[i].ID] = &kinds[i]
	}
	return m
}()

// Types gives the declarations of every event this package knows, by id: the
// header that a Writer writes.
func Types() []EventType {
	types := make([]EventType, len(kinds))
	for i := range kinds {
		types[i] = kinds[i].EventType
	}
	return types
}

// reads reports whether this package decodes events declared as t.
func (k *kind) reads(t EventType) bool {
	if k.own {
		// The version decides; the name is for people.
		return t.Size == VariableSize && t.IsOwn() && strings.HasSuffix(t.Desc, ownSuffix)
	}
	if k.Size == VariableSize || t.Size == VariableSize {
		return t.Size == k.Size
	}
	return t.Size >= k.least
}

// IsOwn reports whether an event type is declared by this project, in any
// version.
func (t EventType) IsOwn() bool { return t.ID >= IDCapture && strings.HasPrefix(t.Desc, ownPrefix) }
