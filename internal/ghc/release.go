package ghc

// release is what differs between releases, in the ways without -prof. Offsets are in
// bytes.
type release struct {
	from  Version // the first series for which the row holds
	patch int     // and the first release of that series: 3 of 9.4.3

	tsoID, tsoLabel    uint16 // StgTSO.id, label (0: there is none)
	whyBlocked         uint16 // StgTSO.why_blocked
	whyBlockedWide     bool   // it has 32 bits, not 16
	profiledCCCS       uint16 // StgTSO.prof.cccs with -prof
	totalAllocated     uint16 // Capability.total_allocated
	pinnedBlocks       uint16 // Capability.pinned_object_blocks
	taskInCallThreaded uint16 // Task.incall with -threaded
	tickyEntries       uint16 // StgEntCounter.entry_count; 0: not known
	tsoWords           uint16 // size of a StgTSO
	denseCells         bool   // see Layout
	ioClosures         bool   // see Layout
	provenance         ProvenanceFormat
}

// releases is in order. A row holds until the next one's first series.
var releases = [...]release{
	{
		from: Version{8, 10}, tsoWords: 15, tsoID: 48, whyBlocked: 34, profiledCCCS: 136, totalAllocated: 1184, pinnedBlocks: 1152,
		taskInCallThreaded: 120, tickyEntries: TickyEntries,
	},
	{
		// The RTS's Condition, which Task has, grew by a clock's id, and Capability by pinned_object_empty.
		from: Version{9, 2}, tsoWords: 15, tsoID: 48, whyBlocked: 34, profiledCCCS: 136, totalAllocated: 1192, pinnedBlocks: 1152,
		taskInCallThreaded: 128, tickyEntries: TickyEntries, provenance: ProvenanceList,
	},
	{
		// Capability grew by current_segments, in several series alike.
		from: Version{9, 2}, patch: 6, tsoWords: 15, tsoID: 48, whyBlocked: 34, profiledCCCS: 136, totalAllocated: 1200, pinnedBlocks: 1160,
		taskInCallThreaded: 128, tickyEntries: TickyEntries, provenance: ProvenanceList,
	},
	{
		from: Version{9, 4}, tsoWords: 15, tsoID: 48, whyBlocked: 34, profiledCCCS: 136, totalAllocated: 1192, pinnedBlocks: 1152,
		taskInCallThreaded: 128, provenance: ProvenanceList,
	},
	{
		from: Version{9, 4}, patch: 3, tsoWords: 15, tsoID: 48, whyBlocked: 34, profiledCCCS: 136, totalAllocated: 1192, pinnedBlocks: 1152,
		taskInCallThreaded: 128, provenance: ProvenanceInline6,
	},
	{
		from: Version{9, 4}, patch: 5, tsoWords: 15, tsoID: 48, whyBlocked: 34, profiledCCCS: 136, totalAllocated: 1200, pinnedBlocks: 1160,
		taskInCallThreaded: 128, provenance: ProvenanceInline6,
	},
	{
		from: Version{9, 6}, tsoWords: 16, tsoID: 48, tsoLabel: 88, whyBlocked: 34, profiledCCCS: 144, totalAllocated: 1192, pinnedBlocks: 1152,
		taskInCallThreaded: 128, tickyEntries: TickyEntries96, provenance: ProvenanceInline8,
	},
	{
		from: Version{9, 6}, patch: 2, tsoWords: 16, tsoID: 48, tsoLabel: 88, whyBlocked: 34, profiledCCCS: 144, totalAllocated: 1200, pinnedBlocks: 1160,
		taskInCallThreaded: 128, tickyEntries: TickyEntries96, provenance: ProvenanceInline8,
	},
	{
		from: Version{9, 8}, tsoWords: 16, tsoID: 48, tsoLabel: 88, whyBlocked: 34, profiledCCCS: 144, totalAllocated: 1200, pinnedBlocks: 1160,
		taskInCallThreaded: 128, tickyEntries: TickyEntries96, provenance: ProvenanceApart8,
	},
	{
		from: Version{9, 8}, patch: 3, tsoWords: 16, tsoID: 48, tsoLabel: 88, whyBlocked: 34, profiledCCCS: 144, totalAllocated: 1200, pinnedBlocks: 1160,
		taskInCallThreaded: 128, tickyEntries: TickyEntries96, denseCells: true, provenance: ProvenanceApart8,
	},
	{
		from: Version{9, 10}, tsoWords: 17, tsoID: 56, tsoLabel: 96, whyBlocked: 40, whyBlockedWide: true, profiledCCCS: 152, totalAllocated: 1200, pinnedBlocks: 1160,
		taskInCallThreaded: 128, tickyEntries: TickyEntries96, denseCells: true, provenance: ProvenanceApart6Text,
	},
	{
		from: Version{9, 10}, patch: 2, tsoWords: 17, tsoID: 56, tsoLabel: 96, whyBlocked: 40, whyBlockedWide: true, profiledCCCS: 152, totalAllocated: 1200, pinnedBlocks: 1160,
		taskInCallThreaded: 128, tickyEntries: TickyEntries96, denseCells: true, provenance: ProvenanceApart6,
	},
	{
		from: Version{9, 15}, tsoWords: 17, tsoID: 56, tsoLabel: 96, whyBlocked: 40, whyBlockedWide: true, profiledCCCS: 152, totalAllocated: 1200, pinnedBlocks: 1160,
		taskInCallThreaded: 128, tickyEntries: TickyEntries96, denseCells: true, ioClosures: true, provenance: ProvenanceMarked6,
	},
}

// ProvenanceFormat is how a release lays out its info table map (-finfo-table-map,
// rts/include/rts/IPE.h).
type ProvenanceFormat uint8

// Formats of the info table map.
const (
	ProvenanceNone       ProvenanceFormat = iota
	ProvenanceList                        // 9.2 to 9.4.2: entries of pointers, each with a symbol of its own
	ProvenanceInline6                     // 9.4.3: entries of six words of 32 bits behind an info pointer each
	ProvenanceInline8                     // 9.6: the same, with file and span apart, and padding
	ProvenanceApart8                      // 9.8: info pointers, entries of eight words and strings each on their own
	ProvenanceApart6Text                  // 9.10.1: the same with six words; unit and module are the whole node's
	ProvenanceApart6                      // 9.10.2: the same, with the closure type as a number, not as text
	ProvenanceMarked6                     // 9.15: the same, with the node's number, and entries and strings behind a magic word
)

// Layout says where the fields lie that are read of a process, in bytes.
type Layout struct {
	Header uint16 // sizeof(StgHeader)

	TSOStackObj    uint16 // StgTSO.stackobj
	TSOWhatNext    uint16 // StgTSO.what_next, 16 bits wide
	TSOFlags       uint16 // StgTSO.flags, 32 bits wide
	TSOBlockInfo   uint16 // StgTSO.block_info
	TSOID          uint16 // StgTSO.id
	TSOBound       uint16 // StgTSO.bound
	TSOCap         uint16 // StgTSO.cap
	TSOTRec        uint16 // StgTSO.trec
	TSOLabel       uint16 // StgTSO.label; 0: there is none (before 9.6)
	TSOStackTotal  uint16 // StgTSO.tot_stack_size: words of all its stack's chunks, 32 bits wide
	TSOCCCS        uint16 // StgTSO.prof.cccs; 0 without -prof
	WhyBlocked     uint16 // StgTSO.why_blocked
	WhyBlockedWide bool   // it has 32 bits, not 16

	StackSize  uint16 // StgStack.stack_size
	StackSp    uint16 // StgStack.sp
	StackFirst uint16 // StgStack.stack

	TaskInCall     uint16 // Task.incall
	TotalAllocated uint16 // Capability.total_allocated, from BaseReg
	PinnedBlocks   uint16 // Capability.pinned_object_blocks, from BaseReg
	SparkStats     uint16 // Capability.spark_stats, from its beginning; 0: there are none
	TickyEntries   uint16 // StgEntCounter.entry_count; 0: not known

	// DenseCells is set where sizes of the non-moving collector's cells need not be powers of two.
	DenseCells bool
	// IOClosures is set where block_info of a thread that waits for a file or a time may be a closure: an I/O manager of the way that is not
	// threaded (+RTS --io-manager=poll) keeps its operations in the heap. All others put a number there.
	IOClosures bool

	TSOWords       uint16 // size of a StgTSO, in words
	TRecChunkWords uint16 // size of a StgTRecChunk, in words
}

// Header sizes: the profiling way has the cost-centre stack, and a word for retainers and
// biographies, in every object.
const (
	headerBytes         = 8
	profiledHeaderBytes = 24
	// ProfiledHeaderWords is by how much a header is longer in the profiling way, in words.
	ProfiledHeaderWords = (profiledHeaderBytes - headerBytes) / 8
)

// Words of a StgTRecChunk, which has 16 entries. In the threaded way an entry counts the
// updates of its variable as well.
const (
	trecChunkWords         = 51
	trecChunkWordsThreaded = 67
)

// sparksBehindAllocated is how far spark_stats lies behind total_allocated in a Capability of the threaded way (rts/Capability.h): 9.0.2,
// 9.6.6 and 9.10.3 were run, the others read.
const sparksBehindAllocated = 112

// TRecEntryBytes is the size of a TRecEntry: what a StgTRecChunk has for each behind its header and two words.
func (l Layout) TRecEntryBytes() int {
	return (8*int(l.TRecChunkWords) - int(l.Header) - TRecEntries) / TRecChunkEntries
}

// LayoutOf gives the layout of a version and way. An unknown version is taken for the
// newest, and known is false.
func LayoutOf(version string, profiled, threaded bool) (l Layout, known bool) {
	r, known := releaseOf(version)
	l = Layout{
		Header:         headerBytes,
		TSOStackObj:    24,
		TSOWhatNext:    32,
		TSOFlags:       36,
		TSOBlockInfo:   r.tsoID - 8,
		TSOBound:       r.tsoID + 16,
		TSOCap:         r.tsoID + 24,
		TSOTRec:        r.tsoID + 32,
		TSOID:          r.tsoID,
		TSOLabel:       r.tsoLabel,
		TSOStackTotal:  8 * (r.tsoWords - 1), // the last field without -prof
		WhyBlocked:     r.whyBlocked,
		WhyBlockedWide: r.whyBlockedWide,
		StackSize:      8,
		StackSp:        16,
		StackFirst:     24,
		TaskInCall:     8,
		TotalAllocated: r.totalAllocated - BaseOfCapability,
		TSOWords:       r.tsoWords,
		TRecChunkWords: trecChunkWords,
		DenseCells:     r.denseCells,
		IOClosures:     r.ioClosures && !threaded,
		PinnedBlocks:   r.pinnedBlocks - BaseOfCapability,
	}
	if known {
		l.TickyEntries = r.tickyEntries
	}
	if threaded {
		l.TaskInCall = r.taskInCallThreaded
		l.SparkStats = r.totalAllocated + sparksBehindAllocated
		l.TRecChunkWords = trecChunkWordsThreaded
	}
	if profiled {
		l.TSOCCCS = r.profiledCCCS
		l.TSOWords += ProfiledHeaderWords + 1
		l.TRecChunkWords += ProfiledHeaderWords
		for _, offset := range []*uint16{
			&l.Header, &l.TSOStackObj, &l.TSOWhatNext, &l.TSOFlags, &l.TSOBlockInfo, &l.TSOID, &l.TSOBound, &l.TSOCap, &l.TSOTRec, &l.TSOLabel, &l.TSOStackTotal, &l.WhyBlocked, &l.StackSize, &l.StackSp, &l.StackFirst,
		} {
			if *offset != 0 {
				*offset += profiledHeaderBytes - headerBytes
			}
		}
	}
	return l, known
}

// ProvenanceOf gives the format of a version's info table map. Versions after the newest
// are taken for it; it is ProvenanceNone where there is no map or the version is none.
func ProvenanceOf(version string) ProvenanceFormat {
	v, err := ParseVersion(version)
	if err != nil || v.Before(Oldest) {
		return ProvenanceNone
	}
	r, _ := releaseOf(version)
	return r.provenance
}

func releaseOf(version string) (r release, known bool) {
	newest := releases[len(releases)-1]
	v, err := ParseVersion(version)
	if err != nil || !v.Known() {
		return newest, false
	}
	patch := patchOf(version)
	for _, row := range releases {
		if row.from.Before(v) || row.from == v && row.patch <= patch {
			r = row
		}
	}
	return r, true
}
