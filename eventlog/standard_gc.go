package eventlog

import "math/bits"

// This file holds the garbage collector's events and the heap's figures. A
// "capset" is the set of capabilities that share the heap. Sizes are bytes.

// Events without fields. GCStart and GCEnd enclose a capability's part in a
// collection; in between it works, idles or is done.
type (
	GCStart      struct{}
	GCEnd        struct{}
	RequestSeqGC struct{}
	RequestParGC struct{}
	GCIdle       struct{}
	GCWork       struct{}
	GCDone       struct{}
	GCGlobalSync struct{} // all capabilities have stopped
)

// GCStats closes a collection.
type GCStats struct {
	Capset               uint32
	Generation           uint16
	Copied, Slop, Frag   uint64
	Threads              uint32 // that collected in parallel
	MaxCopied, TotCopied uint64 // by the busiest thread; by all
	BalancedCopied       uint64 // what would have been copied under perfect balance; 0 in logs of GHC ≤ 8.4
}

// HeapAllocated is what a capability has allocated since the start.
type HeapAllocated struct {
	Capset uint32
	Bytes  uint64
}

// HeapSize is the heap's size in megablocks taken from the OS.
type HeapSize struct {
	Capset uint32
	Bytes  uint64
}

// HeapLive is the live data after a major collection.
type HeapLive struct {
	Capset uint32
	Bytes  uint64
}

// BlocksSize is the size of the blocks in use.
type BlocksSize struct {
	Capset uint32
	Bytes  uint64
}

// HeapInfo gives the heap's parameters.
type HeapInfo struct {
	Capset      uint32
	Generations uint16
	MaxHeap     uint64 // 0 = unlimited
	AllocArea   uint64
	MBlock      uint64
	Block       uint64
}

// MemReturn is an attempt to return memory to the OS; in megablocks.
type MemReturn struct{ Capset, Current, Needed, Returned uint32 }

// Events of the concurrent, non-moving collector without fields.
type (
	ConcMarkBegin  struct{}
	ConcSyncBegin  struct{}
	ConcSyncEnd    struct{}
	ConcSweepBegin struct{}
	ConcSweepEnd   struct{}
)

// ConcMarkEnd ends a concurrent mark phase.
type ConcMarkEnd struct{ Objects uint32 }

// ConcUpdRemSetFlush reports that a capability flushed its update remembered set.
type ConcUpdRemSetFlush struct{ Cap uint16 }

// NonmovingCensus counts the non-moving heap's segments of one block size.
type NonmovingCensus struct {
	BlockSize                          uint16 // bytes
	ActiveSegs, FilledSegs, LiveBlocks uint32
}

// NonmovingPruned counts segments given back.
type NonmovingPruned struct{ Pruned, Free uint32 }

func (*GCStart) EventID() uint16            { return IDGCStart }
func (*GCEnd) EventID() uint16              { return IDGCEnd }
func (*RequestSeqGC) EventID() uint16       { return IDRequestSeqGC }
func (*RequestParGC) EventID() uint16       { return IDRequestParGC }
func (*GCIdle) EventID() uint16             { return IDGCIdle }
func (*GCWork) EventID() uint16             { return IDGCWork }
func (*GCDone) EventID() uint16             { return IDGCDone }
func (*GCGlobalSync) EventID() uint16       { return IDGCGlobalSync }
func (*GCStats) EventID() uint16            { return IDGCStats }
func (*HeapAllocated) EventID() uint16      { return IDHeapAllocated }
func (*HeapSize) EventID() uint16           { return IDHeapSize }
func (*HeapLive) EventID() uint16           { return IDHeapLive }
func (*BlocksSize) EventID() uint16         { return IDBlocksSize }
func (*HeapInfo) EventID() uint16           { return IDHeapInfo }
func (*MemReturn) EventID() uint16          { return IDMemReturn }
func (*ConcMarkBegin) EventID() uint16      { return IDConcMarkBegin }
func (*ConcMarkEnd) EventID() uint16        { return IDConcMarkEnd }
func (*ConcSyncBegin) EventID() uint16      { return IDConcSyncBegin }
func (*ConcSyncEnd) EventID() uint16        { return IDConcSyncEnd }
func (*ConcSweepBegin) EventID() uint16     { return IDConcSweepBegin }
func (*ConcSweepEnd) EventID() uint16       { return IDConcSweepEnd }
func (*ConcUpdRemSetFlush) EventID() uint16 { return IDConcUpdRemSetFlush }
func (*NonmovingCensus) EventID() uint16    { return IDNonmovingCensus }
func (*NonmovingPruned) EventID() uint16    { return IDNonmovingPruned }

func (*GCStart) layout(*codec)        {}
func (*GCEnd) layout(*codec)          {}
func (*RequestSeqGC) layout(*codec)   {}
func (*RequestParGC) layout(*codec)   {}
func (*GCIdle) layout(*codec)         {}
func (*GCWork) layout(*codec)         {}
func (*GCDone) layout(*codec)         {}
func (*GCGlobalSync) layout(*codec)   {}
func (*ConcMarkBegin) layout(*codec)  {}
func (*ConcSyncBegin) layout(*codec)  {}
func (*ConcSyncEnd) layout(*codec)    {}
func (*ConcSweepBegin) layout(*codec) {}
func (*ConcSweepEnd) layout(*codec)   {}

func (e *GCStats) layout(c *codec) {
	c.u32(&e.Capset)
	c.u16(&e.Generation)
	c.u64(&e.Copied)
	c.u64(&e.Slop)
	c.u64(&e.Frag)
	c.u32(&e.Threads)
	c.u64(&e.MaxCopied)
	c.u64(&e.TotCopied)
	c.u64(&e.BalancedCopied)
}

func capsetBytes(c *codec, capset *uint32, bytes *uint64) {
	c.u32(capset)
	c.u64(bytes)
}

func (e *HeapAllocated) layout(c *codec) { capsetBytes(c, &e.Capset, &e.Bytes) }
func (e *HeapSize) layout(c *codec)      { capsetBytes(c, &e.Capset, &e.Bytes) }
func (e *HeapLive) layout(c *codec)      { capsetBytes(c, &e.Capset, &e.Bytes) }
func (e *BlocksSize) layout(c *codec)    { capsetBytes(c, &e.Capset, &e.Bytes) }

func (e *HeapInfo) layout(c *codec) {
	c.u32(&e.Capset)
	c.u16(&e.Generations)
	c.u64(&e.MaxHeap)
	c.u64(&e.AllocArea)
	c.u64(&e.MBlock)
	c.u64(&e.Block)
}

func (e *MemReturn) layout(c *codec) {
	c.u32(&e.Capset)
	c.u32(&e.Current)
	c.u32(&e.Needed)
	c.u32(&e.Returned)
}

func (e *ConcMarkEnd) layout(c *codec)        { c.u32(&e.Objects) }
func (e *ConcUpdRemSetFlush) layout(c *codec) { c.u16(&e.Cap) }

// nonmovingLogSize is the census's payload size where the block size is a u8
// logarithm: in logs of GHC before its issue 23340, and in ours, because older
// readers know no other. Later GHCs have a u16 in its place.
const nonmovingLogSize = 13

func (e *NonmovingCensus) layout(c *codec) {
	if c.size == nonmovingLogSize {
		log := uint8(max(bits.Len16(e.BlockSize), 1) - 1)
		c.u8(&log)
		if !c.encoding {
			e.BlockSize = 1 << log
		}
		if log > 15 || e.BlockSize != 1<<log {
			c.fail("block size is no power of two below 2^16")
		}
	} else {
		c.u16(&e.BlockSize)
	}
	c.u32(&e.ActiveSegs)
	c.u32(&e.FilledSegs)
	c.u32(&e.LiveBlocks)
}

func (e *NonmovingPruned) layout(c *codec) {
	c.u32(&e.Pruned)
	c.u32(&e.Free)
}
