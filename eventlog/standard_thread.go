package eventlog

// This file holds the events of Haskell threads and the capabilities that run
// them. Thread ids are those of TSOs.

// CreateThread reports that a thread was created.
type CreateThread struct{ Thread uint32 }

// RunThread reports that the capability begins to run a thread.
type RunThread struct{ Thread uint32 }

// StopStatus says why a thread stopped running.
type StopStatus uint16

// Stop reasons. From StoppedForeignCall on, they are the RTS's why_blocked + 6.
const (
	StoppedHeapOverflow  StopStatus = 1
	StoppedStackOverflow StopStatus = 2
	StoppedYielding      StopStatus = 3
	StoppedBlocked       StopStatus = 4
	StoppedFinished      StopStatus = 5
	StoppedForeignCall   StopStatus = 6
	StoppedMVar          StopStatus = 7
	StoppedBlackHole     StopStatus = 8 // StopThread.Info is the owner's thread id
	StoppedRead          StopStatus = 9
	StoppedWrite         StopStatus = 10
	StoppedDelay         StopStatus = 11
	StoppedSTM           StopStatus = 12
	StoppedDoProc        StopStatus = 13
	StoppedMsgThrowTo    StopStatus = 18
	StoppedMVarRead      StopStatus = 20
)

// StopThread reports that the capability stopped running a thread.
type StopThread struct {
	Thread uint32
	Status StopStatus
	Info   uint32 // of StoppedBlackHole
}

// ThreadRunnable reports that a thread was put on the capability's run queue.
type ThreadRunnable struct{ Thread uint32 }

// MigrateThread reports that a thread moves to another capability.
type MigrateThread struct {
	Thread uint32
	NewCap uint16
}

// ThreadWakeup reports that a thread was woken on another capability.
type ThreadWakeup struct {
	Thread   uint32
	OtherCap uint16
}

// ThreadLabel names a thread.
type ThreadLabel struct {
	Thread uint32
	Label  string
}

// Startup gives the number of capabilities, in logs of GHC ≤ 7.0.
type Startup struct{ Caps uint16 }

// CapCreate, CapDelete, CapDisable and CapEnable report changes of a capability.
type (
	CapCreate  struct{ Cap uint16 }
	CapDelete  struct{ Cap uint16 }
	CapDisable struct{ Cap uint16 }
	CapEnable  struct{ Cap uint16 }
)

// TaskCreate reports that an OS thread joined the RTS.
type TaskCreate struct {
	Task         uint64
	Cap          uint16
	KernelThread uint64
}

// TaskMigrate reports that a task moves from one capability to another.
type TaskMigrate struct {
	Task        uint64
	Cap, NewCap uint16
}

// TaskDelete reports that a task ended.
type TaskDelete struct{ Task uint64 }

func (*CreateThread) EventID() uint16   { return IDCreateThread }
func (*RunThread) EventID() uint16      { return IDRunThread }
func (*StopThread) EventID() uint16     { return IDStopThread }
func (*ThreadRunnable) EventID() uint16 { return IDThreadRunnable }
func (*MigrateThread) EventID() uint16  { return IDMigrateThread }
func (*ThreadWakeup) EventID() uint16   { return IDThreadWakeup }
func (*ThreadLabel) EventID() uint16    { return IDThreadLabel }
func (*Startup) EventID() uint16        { return IDStartup }
func (*CapCreate) EventID() uint16      { return IDCapCreate }
func (*CapDelete) EventID() uint16      { return IDCapDelete }
func (*CapDisable) EventID() uint16     { return IDCapDisable }
func (*CapEnable) EventID() uint16      { return IDCapEnable }
func (*TaskCreate) EventID() uint16     { return IDTaskCreate }
func (*TaskMigrate) EventID() uint16    { return IDTaskMigrate }
func (*TaskDelete) EventID() uint16     { return IDTaskDelete }

func (e *CreateThread) layout(c *codec)   { c.u32(&e.Thread) }
func (e *RunThread) layout(c *codec)      { c.u32(&e.Thread) }
func (e *ThreadRunnable) layout(c *codec) { c.u32(&e.Thread) }
func (e *Startup) layout(c *codec)        { c.u16(&e.Caps) }
func (e *CapCreate) layout(c *codec)      { c.u16(&e.Cap) }
func (e *CapDelete) layout(c *codec)      { c.u16(&e.Cap) }
func (e *CapDisable) layout(c *codec)     { c.u16(&e.Cap) }
func (e *CapEnable) layout(c *codec)      { c.u16(&e.Cap) }
func (e *TaskDelete) layout(c *codec)     { c.u64(&e.Task) }

func (e *StopThread) layout(c *codec) {
	c.u32(&e.Thread)
	c.u16((*uint16)(&e.Status))
	c.u32(&e.Info)
}

func (e *MigrateThread) layout(c *codec) {
	c.u32(&e.Thread)
	c.u16(&e.NewCap)
}

func (e *ThreadWakeup) layout(c *codec) {
	c.u32(&e.Thread)
	c.u16(&e.OtherCap)
}

func (e *ThreadLabel) layout(c *codec) {
	c.u32(&e.Thread)
	c.text(&e.Label)
}

func (e *TaskCreate) layout(c *codec) {
	c.u64(&e.Task)
	c.u16(&e.Cap)
	c.u64(&e.KernelThread)
}

func (e *TaskMigrate) layout(c *codec) {
	c.u64(&e.Task)
	c.u16(&e.Cap)
	c.u16(&e.NewCap)
}
