package eventlog

// This file holds the events that describe the program and its process, those
// that the program itself posts, and the log's own block markers.

// BlockMarker opens a block: the Size−24 bytes after it are events of one
// capability. The reader gives the capability with each of them.
type BlockMarker struct {
	Size    uint32 // bytes, with the marker itself
	EndTime uint64 // ns
	Cap     uint16 // 0xffff = none
}

// blockMarkerLen is a whole marker's length: id, time and payload.
const blockMarkerLen = 24

// CapsetType says what a set of capabilities has in common.
type CapsetType uint16

// Capset types.
const (
	CapsetCustom      CapsetType = 1
	CapsetOSProcess   CapsetType = 2
	CapsetClockDomain CapsetType = 3
)

// CapsetCreate declares a set of capabilities.
type CapsetCreate struct {
	Capset uint32
	Type   CapsetType
}

// CapsetDelete ends a set of capabilities.
type CapsetDelete struct{ Capset uint32 }

// CapsetAssignCap puts a capability into a set.
type CapsetAssignCap struct {
	Capset uint32
	Cap    uint16
}

// CapsetRemoveCap takes a capability out of a set.
type CapsetRemoveCap struct {
	Capset uint32
	Cap    uint16
}

// RTSIdentifier names the RTS: "GHC-9.0.2 rts_thr".
type RTSIdentifier struct {
	Capset uint32
	Text   string
}

// ProgramArgs gives the command line, program name first.
type ProgramArgs struct {
	Capset uint32
	Args   []string
}

// ProgramEnv gives the environment, as NAME=value.
type ProgramEnv struct {
	Capset uint32
	Env    []string
}

// OSProcessPID gives the process id.
type OSProcessPID struct{ Capset, PID uint32 }

// OSProcessPPID gives the parent's process id.
type OSProcessPPID struct{ Capset, PPID uint32 }

// WallClock ties the log's time to the time since 1970.
type WallClock struct {
	Capset uint32
	Sec    uint64
	Nsec   uint32
}

// LogMsg is a message of the RTS (traceEvent's ancestor, debug output).
type LogMsg struct{ Text string }

// UserMsg is a message of the program (Debug.Trace.traceEvent).
type UserMsg struct{ Text string }

// UserMarker is a moment the program marked (Debug.Trace.traceMarker).
type UserMarker struct{ Text string }

// UserBinaryMsg is a message of the program in bytes.
type UserBinaryMsg struct{ Data []byte }

// HackT9003 is an event without meaning that GHC keeps for its issue 9003.
type HackT9003 struct{}

func (*BlockMarker) EventID() uint16     { return IDBlockMarker }
func (*CapsetCreate) EventID() uint16    { return IDCapsetCreate }
func (*CapsetDelete) EventID() uint16    { return IDCapsetDelete }
func (*CapsetAssignCap) EventID() uint16 { return IDCapsetAssignCap }
func (*CapsetRemoveCap) EventID() uint16 { return IDCapsetRemoveCap }
func (*RTSIdentifier) EventID() uint16   { return IDRTSIdentifier }
func (*ProgramArgs) EventID() uint16     { return IDProgramArgs }
func (*ProgramEnv) EventID() uint16      { return IDProgramEnv }
func (*OSProcessPID) EventID() uint16    { return IDOSProcessPID }
func (*OSProcessPPID) EventID() uint16   { return IDOSProcessPPID }
func (*WallClock) EventID() uint16       { return IDWallClock }
func (*LogMsg) EventID() uint16          { return IDLogMsg }
func (*UserMsg) EventID() uint16         { return IDUserMsg }
func (*UserMarker) EventID() uint16      { return IDUserMarker }
func (*UserBinaryMsg) EventID() uint16   { return IDUserBinaryMsg }
func (*HackT9003) EventID() uint16       { return IDHackT9003 }

func (e *LogMsg) layout(c *codec)        { c.text(&e.Text) }
func (e *UserMsg) layout(c *codec)       { c.text(&e.Text) }
func (e *UserMarker) layout(c *codec)    { c.text(&e.Text) }
func (e *UserBinaryMsg) layout(c *codec) { c.rest(&e.Data) }
func (*HackT9003) layout(*codec)         {}

func (e *BlockMarker) layout(c *codec) {
	c.u32(&e.Size)
	c.u64(&e.EndTime)
	c.u16(&e.Cap)
}

func (e *CapsetCreate) layout(c *codec) {
	c.u32(&e.Capset)
	c.u16((*uint16)(&e.Type))
}

func (e *CapsetDelete) layout(c *codec) { c.u32(&e.Capset) }

func (e *CapsetAssignCap) layout(c *codec) {
	c.u32(&e.Capset)
	c.u16(&e.Cap)
}

func (e *CapsetRemoveCap) layout(c *codec) {
	c.u32(&e.Capset)
	c.u16(&e.Cap)
}

func (e *RTSIdentifier) layout(c *codec) {
	c.u32(&e.Capset)
	c.text(&e.Text)
}

func (e *ProgramArgs) layout(c *codec) {
	c.u32(&e.Capset)
	c.cstrs(&e.Args)
}

func (e *ProgramEnv) layout(c *codec) {
	c.u32(&e.Capset)
	c.cstrs(&e.Env)
}

func (e *OSProcessPID) layout(c *codec) {
	c.u32(&e.Capset)
	c.u32(&e.PID)
}

func (e *OSProcessPPID) layout(c *codec) {
	c.u32(&e.Capset)
	c.u32(&e.PPID)
}

func (e *WallClock) layout(c *codec) {
	c.u32(&e.Capset)
	c.u64(&e.Sec)
	c.u32(&e.Nsec)
}
