package ghc

// WhyBlocked is a thread's why_blocked (rts/include/rts/Constants.h).
type WhyBlocked uint32

// Reasons for which a thread does not run.
const (
	NotBlocked                  WhyBlocked = 0
	BlockedOnMVar               WhyBlocked = 1
	BlockedOnBlackHole          WhyBlocked = 2
	BlockedOnRead               WhyBlocked = 3
	BlockedOnWrite              WhyBlocked = 4
	BlockedOnDelay              WhyBlocked = 5
	BlockedOnSTM                WhyBlocked = 6
	BlockedOnCCall              WhyBlocked = 10
	BlockedOnCCallInterruptible WhyBlocked = 11
	BlockedOnMsgThrowTo         WhyBlocked = 12
	ThreadMigrating             WhyBlocked = 13
	BlockedOnMVarRead           WhyBlocked = 14
)

// Values of a thread's what_next (rts/include/rts/Constants.h) that say that it has ended.
const (
	ThreadKilled   = 3 // by an exception
	ThreadComplete = 4
)

// Where the fields of closures that threads wait on lie behind the header
// (rts/include/rts/storage/Closures.h).
const (
	TSOGlobalLink = 8 // StgTSO.global_link

	Indirectee = 0 // StgInd.indirectee: of a black hole its owner, or a blocking queue

	MVarHead  = 0 // a StgMVarTSOQueue
	MVarTail  = 8
	MVarValue = 16

	MVarQueueLink = 0
	MVarQueueTSO  = 8

	QueueBH    = 8  // StgBlockingQueue.bh
	QueueOwner = 16 // StgBlockingQueue.owner

	MessageTSO    = 8  // MessageBlackHole.tso
	MessageBH     = 16 // MessageBlackHole.bh
	MessageTarget = 16 // MessageThrowTo.target

	TRecCurrent   = 8 // StgTRecHeader.current_chunk
	TRecPrevChunk = 0 // StgTRecChunk.prev_chunk
	TRecNextEntry = 8 // StgTRecChunk.next_entry_idx
	TRecEntries   = 16

	TVarValue = 0 // StgTVar.current_value
)

// TRecChunkEntries is the number of entries that a StgTRecChunk has room for.
const TRecChunkEntries = 16
