package ghc

// Offsets from BaseReg, which points to a StgRegTable (rts/include/stg/Regs.h).
const (
	BaseCCCS           = 864 // rCCCS: the running cost-centre stack
	BaseCurrentTSO     = 872 // rCurrentTSO
	BaseNursery        = 880 // rNursery: the nursery, or its chunk, that is being filled
	BaseCurrentNursery = 888 // rCurrentNursery: the descriptor of the block that is
	BaseHpAlloc        = 904 // rHpAlloc: what a failed heap check wanted, in bytes
	BaseRet            = 912 // rRet: why a thread returned to the scheduler
)

// BaseRegisters is how many words from BaseReg on are R1 to R10, for those that are in no machine register.
const BaseRegisters = 10

// StgRun (rts/StgCRun.c) calls Haskell code: it makes room on the C stack for what that code keeps there, below what C is to find
// again, and its return address. Haskell code leaves C's stack pointer at the lower end of that room.
const (
	RunRoom   = 16384
	RunReturn = RunRoom + 48
)

// RunCode is how StgRun begins on x86-64, from 8.10 to 9.10: sub $48,%rsp; mov %rsp,%rax; sub $16384,%rsp.
var RunCode = []byte{0x48, 0x83, 0xec, 0x30, 0x48, 0x89, 0xe0, 0x48, 0x81, 0xec, 0x00, 0x40, 0x00, 0x00}

// BaseOfCapability is where a Capability's StgRegTable begins, behind its StgFunTable
// (rts/Capability.h). The other fields are counted from there: from BaseReg.
const (
	BaseOfCapability = 24
	BaseCapabilityNo = 944 - BaseOfCapability  // no
	BaseRunningTask  = 952 - BaseOfCapability  // running_task
	BaseInHaskell    = 960 - BaseOfCapability  // in_haskell, 8 bits wide
	BaseSuspended    = 1000 - BaseOfCapability // suspended_ccalls: the InCalls of safe foreign calls, linked by next
)

// Values of rRet (rts/include/rts/Constants.h).
const (
	HeapOverflow  = 1
	ThreadBlocked = 4
)

// Fields of a nursery (rts/sm/Storage.h) and of a block's descriptor
// (rts/include/rts/storage/Block.h).
const (
	NurseryFirst  = 0 // blocks: the descriptor of the first, from which they are linked
	NurseryBlocks = 8 // n_blocks

	BlockStart = 0
	BlockFree  = 8 // free: one past the last byte that is allocated
	BlockLink  = 16
	BlockBack  = 24 // u.back
	BlockGen   = 32 // gen: the generation that the group belongs to
	BlockFlags = 46 // flags, 16 bits
	BlockCount = 48 // blocks: of the group, 32 bits

	BlockDescriptorBytes = 64
)

// Fields of a range of megablocks that the allocator has given back (free_list, rts/sm/MBlock.c).
const (
	FreeSpaceNext    = 8
	FreeSpaceAddress = 16
	FreeSpaceSize    = 24
)

// Flags of a group of blocks (rts/include/rts/storage/Block.h).
const (
	BlockEvacuated = 1 << 0 // it holds what a collection has kept
	BlockLarge     = 1 << 1 // it holds one large object
	BlockPinned    = 1 << 2 // it holds byte arrays that are not moved
	BlockExec      = 1 << 5 // it holds code that the run-time system made (before 9.4)
	BlockCompact   = 1 << 9 // it belongs to a compact region
	BlockNonmoving = 1 << 10
)

// Fields of a compact region's first block: the block's own descriptor comes first
// (StgCompactNFDataBlock), then the StgCompactNFData (rts/include/rts/storage/Closures.h).
const (
	CompactOwner  = 8  // of StgCompactNFDataBlock: the region that the block belongs to
	CompactRegion = 24 // where the StgCompactNFData begins in the first block
)

// Fields of a generation (rts/include/rts/storage/GC.h). Of the youngest, the objects of the
// words since the last collection come first in the list.
const (
	GenerationNo           = 0   // no, 32 bits
	GenerationBlocks       = 8   // blocks: what comes to it is put first
	GenerationWords        = 24  // n_words: in its blocks
	GenerationLargeObjects = 32  // large_objects, likewise
	GenerationLargeWords   = 48  // n_large_words
	GenerationNewLarge     = 56  // n_new_large_words: since the last collection
	GenerationRegions      = 64  // compact_objects, likewise
	GenerationCompact      = 72  // n_compact_blocks
	GenerationThreads      = 104 // threads: all of them that are in the generation, linked by TSOGlobalLink
	GenerationTo           = 120 // to: the generation that objects are promoted to
	GenerationCollections  = 128 // collections, 32 bits
)

// Fields of RTSStats, which every collection updates (rts/include/RtsAPI.h).
const (
	StatsGCs       = 0   // gcs, 32 bits wide
	StatsMajorGCs  = 4   // major_gcs, likewise
	StatsAllocated = 8   // allocated_bytes, when the last collection ended
	StatsCopied    = 64  // copied_bytes
	StatsGC        = 160 // gc: the GCDetails of the last collection
	GCDetailsLive  = 16  // live_bytes
	GCDetailsInUse = 48  // mem_in_use_bytes
)

// Fields of an InCall, which is a call from C into Haskell (rts/Task.h).
const (
	InCallSuspendedTSO = 8
	InCallTask         = 40
	InCallPrevStack    = 48
	InCallNext         = 64
)

// TaskID is where a Task has its OS thread's pthread_t, in the threaded way (rts/Task.h).
const TaskID = 0

// Fields of CostCentreStack and CostCentre (rts/include/rts/prof/CCS.h).
const (
	CCSCC    = 8
	CCSPrev  = 16
	CCSDepth = 40

	CCLabel  = 8
	CCModule = 16
	CCSrcLoc = 24
	CCIsCAF  = 48
)

// Fields of StgEntCounter (rts/include/rts/Ticky.h). The words of allocs and link follow
// entry_count, whose place depends on the release.
const (
	TickyArity     = 8
	TickyAllocated = 16 // allocd
	TickyName      = 24 // str
	TickyKinds     = 32 // arg_kinds
	TickyEntries   = 40 // entry_count
	TickyEntries96 = 56 // from 9.6
)

// Fields of RtsFlags.GcFlags, in blocks and 32 bits wide (rts/include/rts/Flags.h).
const (
	FlagsMaxHeap   = 28 // maxHeapSize
	FlagsAllocArea = 32 // minAllocAreaSize
)

// Sizes of the heap's units, in bytes (rts/include/rts/Constants.h).
const (
	BlockBytes     = 4 << 10
	MegablockBytes = 1 << 20
)

// BlocksPerMegablock leaves out the blocks that hold the descriptors of the others.
const BlocksPerMegablock = 252

// LargeObjectWords is the size from which on allocateMightFail makes a large object: eight
// tenths of a block (LARGE_OBJECT_THRESHOLD), rounded down to words.
const LargeObjectWords = 409
