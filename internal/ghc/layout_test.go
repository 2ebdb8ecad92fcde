package ghc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// probe prints facts as GHC's own header files have them, one a line.
const probe = `
#include "Rts.h"
#include "DerivedConstants.h"
#include <stddef.h>
#include <stdio.h>

#define SHOW(name, value) printf("%s %ld\n", name, (long)(value))
#define FIELD(type, field) SHOW(#type "." #field, offsetof(type, field))
#define BEHIND(type, field) SHOW(#type "." #field, offsetof(type, field) - sizeof(StgHeader))
#define BEFORE(type, field) SHOW(#type "." #field, sizeof(type) - offsetof(type, field))

int main(void)
{
	SHOW("header", sizeof(StgHeader));
	FIELD(StgTSO, stackobj);
	FIELD(StgTSO, what_next);
	SHOW("sizeof what_next", sizeof(((StgTSO *)0)->what_next));
	FIELD(StgTSO, flags);
	FIELD(StgTSO, block_info);
	FIELD(StgTSO, id);
	FIELD(StgTSO, bound);
	FIELD(StgTSO, cap);
	FIELD(StgTSO, trec);
	FIELD(StgTSO, tot_stack_size);
	BEHIND(StgTSO, global_link);
	BEHIND(StgInd, indirectee);
	BEHIND(StgMVar, head);
	BEHIND(StgMVar, tail);
	BEHIND(StgMVar, value);
	BEHIND(StgMVarTSOQueue, link);
	BEHIND(StgMVarTSOQueue, tso);
	BEHIND(StgBlockingQueue, bh);
	BEHIND(StgBlockingQueue, owner);
	BEHIND(MessageBlackHole, tso);
	BEHIND(MessageBlackHole, bh);
	BEHIND(MessageThrowTo, target);
	BEHIND(StgTRecHeader, current_chunk);
	BEHIND(StgTRecChunk, prev_chunk);
	BEHIND(StgTRecChunk, next_entry_idx);
	BEHIND(StgTRecChunk, entries);
	BEHIND(StgTVar, current_value);
	SHOW("sizeof TRecEntry", sizeof(TRecEntry));
	SHOW("BlockedOnMVar", BlockedOnMVar);
	SHOW("BlockedOnMVarRead", BlockedOnMVarRead);
	SHOW("BlockedOnBlackHole", BlockedOnBlackHole);
	SHOW("BlockedOnRead", BlockedOnRead);
	SHOW("BlockedOnWrite", BlockedOnWrite);
	SHOW("BlockedOnDelay", BlockedOnDelay);
	SHOW("BlockedOnSTM", BlockedOnSTM);
	SHOW("BlockedOnCCall", BlockedOnCCall);
	SHOW("BlockedOnCCall_Interruptible", BlockedOnCCall_Interruptible);
	SHOW("BlockedOnMsgThrowTo", BlockedOnMsgThrowTo);
	SHOW("ThreadMigrating", ThreadMigrating);
	SHOW("ThreadKilled", ThreadKilled);
	SHOW("ThreadComplete", ThreadComplete);
	FIELD(StgTSO, why_blocked);
	SHOW("sizeof why_blocked", sizeof(((StgTSO *)0)->why_blocked));
#ifdef LABELLED
	FIELD(StgTSO, label);
#endif
#ifdef PROFILING
	FIELD(StgTSO, prof.cccs);
#endif
	FIELD(StgStack, stack_size);
	FIELD(StgStack, sp);
	FIELD(StgStack, stack);
	FIELD(StgRegTable, rCCCS);
	FIELD(StgRegTable, rCurrentTSO);
	FIELD(StgRegTable, rNursery);
	FIELD(StgRegTable, rCurrentNursery);
	FIELD(StgRegTable, rHpAlloc);
	FIELD(bdescr, start);
	FIELD(bdescr, free);
	FIELD(bdescr, link);
	FIELD(bdescr, u.back);
	FIELD(bdescr, blocks);
	FIELD(bdescr, gen);
	FIELD(bdescr, flags);
	SHOW("bdescr", sizeof(bdescr));
	SHOW("BF_EVACUATED", BF_EVACUATED);
	SHOW("BF_LARGE", BF_LARGE);
	SHOW("BF_PINNED", BF_PINNED);
	SHOW("BF_COMPACT", BF_COMPACT);
	SHOW("BF_NONMOVING", BF_NONMOVING);
	FIELD(StgCompactNFDataBlock, owner);
	SHOW("StgCompactNFDataBlock", sizeof(StgCompactNFDataBlock));
	SHOW("StgCompactNFData.totalW", offsetof(StgCompactNFData, totalW) - sizeof(StgHeader));
	FIELD(generation, no);
	FIELD(generation, blocks);
	FIELD(generation, n_words);
	FIELD(generation, n_large_words);
	FIELD(generation, compact_objects);
	FIELD(generation, n_compact_blocks);
	FIELD(generation, threads);
	FIELD(generation, to);
	FIELD(generation, collections);
	SHOW("StgTSO", sizeof(StgTSO) / sizeof(W_));
	SHOW("StgTRecChunk", sizeof(StgTRecChunk) / sizeof(W_));
	FIELD(StgRegTable, rRet);
	SHOW("Capability.r", OFFSET_Capability_r);
	SHOW("Capability.no", OFFSET_Capability_no);
	SHOW("Capability.total_allocated", OFFSET_Capability_total_allocated);
	FIELD(CostCentreStack, cc);
	FIELD(CostCentreStack, prevStack);
	FIELD(CostCentreStack, depth);
	FIELD(CostCentre, label);
	FIELD(CostCentre, module);
	FIELD(CostCentre, srcloc);
	FIELD(CostCentre, is_caf);
	FIELD(StgEntCounter, arity);
	FIELD(StgEntCounter, allocd);
	FIELD(StgEntCounter, str);
	FIELD(StgEntCounter, arg_kinds);
	FIELD(StgEntCounter, entry_count);
	FIELD(StgEntCounter, allocs);
	FIELD(StgEntCounter, link);
	FIELD(generation, large_objects);
	FIELD(generation, n_new_large_words);
	FIELD(RTSStats, gcs);
	FIELD(RTSStats, allocated_bytes);
	FIELD(RTSStats, major_gcs);
	FIELD(RTSStats, copied_bytes);
	FIELD(RTSStats, gc.live_bytes);
	FIELD(RTSStats, gc.mem_in_use_bytes);
	FIELD(GC_FLAGS, maxHeapSize);
	FIELD(GC_FLAGS, minAllocAreaSize);
	SHOW("block", BLOCK_SIZE);
	SHOW("megablock", MBLOCK_SIZE);
	SHOW("blocks", BLOCKS_PER_MBLOCK);
	SHOW("large", LARGE_OBJECT_THRESHOLD / sizeof(W_));
	SHOW("HeapOverflow", HeapOverflow);
	SHOW("ThreadBlocked", ThreadBlocked);
	BEFORE(StgInfoTable, type);
	BEFORE(StgInfoTable, layout);
	SHOW("fun arity", sizeof(StgFunInfoTable) - offsetof(StgFunInfoTable, f.arity));
	SHOW("fun type", sizeof(StgFunInfoTable) - offsetof(StgFunInfoTable, f.fun_type));
	SHOW("fun bitmap", sizeof(StgFunInfoTable) - offsetof(StgFunInfoTable, f.b.bitmap));
	SHOW("bitmap size", BITMAP_SIZE_MASK);
	SHOW("bco bitmap", offsetof(StgBCO, bitmap) - sizeof(StgHeader));
	SHOW("CONSTR", CONSTR);
	SHOW("CONSTR_NOCAF", CONSTR_NOCAF);
	SHOW("FUN", FUN);
	SHOW("FUN_STATIC", FUN_STATIC);
	SHOW("THUNK", THUNK);
	SHOW("THUNK_SELECTOR", THUNK_SELECTOR);
	SHOW("AP", AP);
	SHOW("IND_STATIC", IND_STATIC);
	SHOW("con_desc", sizeof(StgConInfoTable) - offsetof(StgConInfoTable, con_desc));
	SHOW("CONSTR_1_0", CONSTR_1_0);
	SHOW("CONSTR_0_1", CONSTR_0_1);
	SHOW("CONSTR_2_0", CONSTR_2_0);
	SHOW("CONSTR_1_1", CONSTR_1_1);
	SHOW("CONSTR_0_2", CONSTR_0_2);
	SHOW("FUN_1_0", FUN_1_0);
	SHOW("FUN_0_2", FUN_0_2);
	SHOW("THUNK_1_0", THUNK_1_0);
	SHOW("THUNK_0_2", THUNK_0_2);
	SHOW("THUNK_STATIC", THUNK_STATIC);
	SHOW("BCO", BCO);
	SHOW("PAP", PAP);
	SHOW("AP_STACK", AP_STACK);
	SHOW("IND", IND);
	SHOW("BLOCKING_QUEUE", BLOCKING_QUEUE);
	SHOW("MVAR_CLEAN", MVAR_CLEAN);
	SHOW("MVAR_DIRTY", MVAR_DIRTY);
	SHOW("TVAR", TVAR);
	SHOW("ARR_WORDS", ARR_WORDS);
	SHOW("MUT_ARR_PTRS_CLEAN", MUT_ARR_PTRS_CLEAN);
	SHOW("MUT_ARR_PTRS_FROZEN_CLEAN", MUT_ARR_PTRS_FROZEN_CLEAN);
	SHOW("MUT_VAR_CLEAN", MUT_VAR_CLEAN);
	SHOW("MUT_VAR_DIRTY", MUT_VAR_DIRTY);
	SHOW("WEAK", WEAK);
	SHOW("PRIM", PRIM);
	SHOW("MUT_PRIM", MUT_PRIM);
	SHOW("STACK", STACK);
	SHOW("TREC_CHUNK", TREC_CHUNK);
	SHOW("WHITEHOLE", WHITEHOLE);
	SHOW("SMALL_MUT_ARR_PTRS_CLEAN", SMALL_MUT_ARR_PTRS_CLEAN);
	SHOW("SMALL_MUT_ARR_PTRS_FROZEN_CLEAN", SMALL_MUT_ARR_PTRS_FROZEN_CLEAN);
	SHOW("COMPACT_NFDATA", COMPACT_NFDATA);
#ifdef CONTINUATION
	SHOW("CONTINUATION", CONTINUATION);
#endif
	SHOW("RET_BCO", RET_BCO);
	SHOW("RET_SMALL", RET_SMALL);
	SHOW("RET_BIG", RET_BIG);
	SHOW("RET_FUN", RET_FUN);
	SHOW("UPDATE_FRAME", UPDATE_FRAME);
	SHOW("CATCH_FRAME", CATCH_FRAME);
	SHOW("UNDERFLOW_FRAME", UNDERFLOW_FRAME);
	SHOW("STOP_FRAME", STOP_FRAME);
	SHOW("BLACKHOLE", BLACKHOLE);
	SHOW("TSO", TSO);
	SHOW("ATOMICALLY_FRAME", ATOMICALLY_FRAME);
	SHOW("CATCH_RETRY_FRAME", CATCH_RETRY_FRAME);
	SHOW("CATCH_STM_FRAME", CATCH_STM_FRAME);
#ifdef ANN_FRAME
	SHOW("ANN_FRAME", ANN_FRAME);
#endif
	SHOW("ARG_GEN", ARG_GEN);
	SHOW("ARG_GEN_BIG", ARG_GEN_BIG);
	SHOW("ARG_BCO", ARG_BCO);
	SHOW("ARG_NONE", ARG_NONE);
	SHOW("ARG_N", ARG_N);
	SHOW("ARG_PP", ARG_PP);
	SHOW("ARG_NNN", ARG_NNN);
	SHOW("ARG_PPPPPPPP", ARG_PPPPPPPP);
	return 0;
}
`

// facts are what the package says of a version and way, by the probe's names.
func facts(version string, profiled bool) map[string]int {
	l, _ := LayoutOf(version, profiled, false)
	wide, info := 2, 0
	if l.WhyBlockedWide {
		wide = 4
	}
	if profiled {
		info = InfoProfiled
	}
	m := map[string]int{
		"header": int(l.Header), "StgTSO.stackobj": int(l.TSOStackObj), "StgTSO.id": int(l.TSOID),
		"StgTSO.what_next": int(l.TSOWhatNext), "sizeof what_next": 2, "StgTSO.flags": int(l.TSOFlags), "StgTSO.block_info": int(l.TSOBlockInfo),
		"StgTSO.bound": int(l.TSOBound), "StgTSO.cap": int(l.TSOCap), "StgTSO.trec": int(l.TSOTRec), "StgTSO.global_link": TSOGlobalLink, "StgTSO.tot_stack_size": int(l.TSOStackTotal),
		"StgInd.indirectee": Indirectee, "StgMVar.head": MVarHead, "StgMVar.tail": MVarTail, "StgMVar.value": MVarValue,
		"StgMVarTSOQueue.link": MVarQueueLink, "StgMVarTSOQueue.tso": MVarQueueTSO, "StgBlockingQueue.bh": QueueBH, "StgBlockingQueue.owner": QueueOwner,
		"MessageBlackHole.tso": MessageTSO, "MessageBlackHole.bh": MessageBH, "MessageThrowTo.target": MessageTarget,
		"StgTRecHeader.current_chunk": TRecCurrent, "StgTRecChunk.prev_chunk": TRecPrevChunk, "StgTRecChunk.next_entry_idx": TRecNextEntry,
		"StgTRecChunk.entries": TRecEntries, "sizeof TRecEntry": l.TRecEntryBytes(), "StgTVar.current_value": TVarValue,
		"BlockedOnMVar": int(BlockedOnMVar), "BlockedOnMVarRead": int(BlockedOnMVarRead), "BlockedOnBlackHole": int(BlockedOnBlackHole),
		"BlockedOnRead": int(BlockedOnRead), "BlockedOnWrite": int(BlockedOnWrite), "BlockedOnDelay": int(BlockedOnDelay),
		"BlockedOnSTM": int(BlockedOnSTM), "BlockedOnCCall": int(BlockedOnCCall), "BlockedOnCCall_Interruptible": int(BlockedOnCCallInterruptible),
		"BlockedOnMsgThrowTo": int(BlockedOnMsgThrowTo), "ThreadMigrating": int(ThreadMigrating), "ThreadKilled": ThreadKilled, "ThreadComplete": ThreadComplete,
		"StgTSO.why_blocked": int(l.WhyBlocked), "sizeof why_blocked": wide,
		"StgStack.stack_size": int(l.StackSize), "StgStack.sp": int(l.StackSp), "StgStack.stack": int(l.StackFirst),
		"StgRegTable.rCCCS": BaseCCCS, "StgRegTable.rCurrentTSO": BaseCurrentTSO, "StgRegTable.rNursery": BaseNursery,
		"StgRegTable.rCurrentNursery": BaseCurrentNursery, "StgRegTable.rHpAlloc": BaseHpAlloc,
		"bdescr.start": BlockStart, "bdescr.free": BlockFree, "bdescr.link": BlockLink, "bdescr.u.back": BlockBack, "bdescr.blocks": BlockCount,
		"bdescr.gen": BlockGen, "bdescr.flags": BlockFlags, "bdescr": BlockDescriptorBytes,
		"BF_EVACUATED": BlockEvacuated, "BF_LARGE": BlockLarge, "BF_PINNED": BlockPinned, "BF_COMPACT": BlockCompact, "BF_NONMOVING": BlockNonmoving,
		"StgCompactNFDataBlock.owner": CompactOwner, "StgCompactNFDataBlock": CompactRegion, "StgCompactNFData.totalW": 0,
		"generation.no": GenerationNo, "generation.blocks": GenerationBlocks, "generation.n_words": GenerationWords, "generation.n_large_words": GenerationLargeWords,
		"generation.compact_objects": GenerationRegions, "generation.n_compact_blocks": GenerationCompact, "generation.threads": GenerationThreads, "generation.to": GenerationTo,
		"generation.collections": GenerationCollections,
		"StgTSO":                 int(l.TSOWords), "StgTRecChunk": int(l.TRecChunkWords), "StgRegTable.rRet": BaseRet,
		"generation.large_objects": GenerationLargeObjects, "generation.n_new_large_words": GenerationNewLarge,
		"RTSStats.gcs": StatsGCs, "RTSStats.allocated_bytes": StatsAllocated,
		"RTSStats.major_gcs": StatsMajorGCs, "RTSStats.copied_bytes": StatsCopied,
		"RTSStats.gc.live_bytes": StatsGC + GCDetailsLive, "RTSStats.gc.mem_in_use_bytes": StatsGC + GCDetailsInUse,
		"Capability.r": BaseOfCapability, "Capability.no": BaseOfCapability + BaseCapabilityNo,
		"Capability.total_allocated": BaseOfCapability + int(l.TotalAllocated),
		"CostCentreStack.cc":         CCSCC, "CostCentreStack.prevStack": CCSPrev, "CostCentreStack.depth": CCSDepth,
		"CostCentre.label": CCLabel, "CostCentre.module": CCModule, "CostCentre.srcloc": CCSrcLoc, "CostCentre.is_caf": CCIsCAF,
		"StgEntCounter.arity": TickyArity, "StgEntCounter.allocd": TickyAllocated, "StgEntCounter.str": TickyName, "StgEntCounter.arg_kinds": TickyKinds,
		"StgEntCounter.entry_count": int(l.TickyEntries), "StgEntCounter.allocs": int(l.TickyEntries) + 8, "StgEntCounter.link": int(l.TickyEntries) + 16,
		"GC_FLAGS.maxHeapSize": FlagsMaxHeap, "GC_FLAGS.minAllocAreaSize": FlagsAllocArea,
		"block": BlockBytes, "megablock": MegablockBytes, "blocks": BlocksPerMegablock, "large": LargeObjectWords,
		"HeapOverflow": HeapOverflow, "ThreadBlocked": ThreadBlocked,
		"StgInfoTable.type": InfoType, "StgInfoTable.layout": InfoLayout,
		"fun arity": FunArity + info, "fun type": FunArgs + info, "fun bitmap": FunBitmap + info,
		"bitmap size": BitmapSize, "bco bitmap": BCOBitmap,
		"CONSTR": int(Constr), "CONSTR_NOCAF": int(ConstrNoCAF), "FUN": int(Fun), "FUN_STATIC": int(FunStatic),
		"THUNK": int(Thunk), "THUNK_SELECTOR": int(ThunkSelector), "AP": int(AP), "IND_STATIC": int(IndStatic),
		"con_desc":   ConstrDesc + info,
		"CONSTR_1_0": int(Constr10), "CONSTR_0_1": int(Constr01), "CONSTR_2_0": int(Constr20), "CONSTR_1_1": int(Constr11), "CONSTR_0_2": int(Constr02),
		"FUN_1_0": int(Fun10), "FUN_0_2": int(Fun02), "THUNK_1_0": int(Thunk10), "THUNK_0_2": int(Thunk02), "THUNK_STATIC": int(ThunkStatic),
		"BCO": int(BCO), "PAP": int(PAP), "AP_STACK": int(APStack), "IND": int(Ind), "BLOCKING_QUEUE": int(BlockingQueue),
		"MVAR_CLEAN": int(MVar), "MVAR_DIRTY": int(MVarDirty), "TVAR": int(TVar), "ARR_WORDS": int(ArrWords),
		"MUT_ARR_PTRS_CLEAN": int(MutArr), "MUT_ARR_PTRS_FROZEN_CLEAN": int(MutArrFrozen), "MUT_VAR_CLEAN": int(MutVar), "MUT_VAR_DIRTY": int(MutVarDirty),
		"WEAK": int(Weak), "PRIM": int(Prim), "MUT_PRIM": int(MutPrim), "STACK": int(Stack), "TREC_CHUNK": int(TRecChunk), "WHITEHOLE": int(Whitehole),
		"SMALL_MUT_ARR_PTRS_CLEAN": int(SmallArr), "SMALL_MUT_ARR_PTRS_FROZEN_CLEAN": int(SmallArrFrozen), "COMPACT_NFDATA": int(Compact),
		"RET_BCO": int(RetBCO), "RET_SMALL": int(RetSmall), "RET_BIG": int(RetBig), "RET_FUN": int(RetFun),
		"UPDATE_FRAME": int(UpdateFrame), "CATCH_FRAME": int(CatchFrame), "UNDERFLOW_FRAME": int(UnderflowFrame), "STOP_FRAME": int(StopFrame),
		"BLACKHOLE": int(Blackhole), "TSO": int(TSO),
		"ATOMICALLY_FRAME": int(AtomicallyFrame), "CATCH_RETRY_FRAME": int(CatchRetryFrame), "CATCH_STM_FRAME": int(CatchSTMFrame),
		"ARG_GEN": ArgGen, "ARG_GEN_BIG": ArgGenBig, "ARG_BCO": ArgBCO,
		"ARG_NONE": 3, "ARG_N": 4, "ARG_PP": 15, "ARG_NNN": 16, "ARG_PPPPPPPP": 28,
	}
	if l.TSOLabel != 0 {
		m["StgTSO.label"] = int(l.TSOLabel)
	}
	if l.TSOCCCS != 0 {
		m["StgTSO.prof.cccs"] = int(l.TSOCCCS)
	}
	if v, _ := ParseVersion(version); !v.Before(Version{9, 6}) {
		m["CONTINUATION"] = int(Continuation)
	}
	if v, _ := ParseVersion(version); !v.Before(Version{9, 14}) {
		m["ANN_FRAME"] = int(AnnFrame)
	}
	return m
}

// The header files of every GHC that is installed have the facts that the package states
// for its release.
func TestFactsAreThoseOfGHCsHeaders(t *testing.T) {
	testprog.Each(t, func(t *testing.T, release string) {
		version := release
		if version == "" {
			_, version = testprog.GHC(t, "")
		}
		for _, profiled := range []bool{false, true} {
			want := facts(version, profiled)
			args := []string{"-v0", "-no-hs-main", "probe.c", "-o", "probe"}
			if profiled {
				args = append(args, "-optc-DPROFILING")
			}
			if want["StgTSO.label"] != 0 {
				args = append(args, "-optc-DLABELLED")
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "probe.c"), []byte(probe), 0o644); err != nil {
				t.Fatal(err)
			}
			testprog.Compile(t, release, dir, args...)
			out, err := exec.Command(filepath.Join(dir, "probe")).Output()
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(out)) {
				at := strings.LastIndexByte(line, ' ')
				var value int
				if _, err := fmt.Sscan(line[at:], &value); err != nil {
					t.Fatal(err)
				}
				name := line[:at]
				if got, ok := want[name]; !ok || got != value {
					t.Errorf("GHC %s, profiled %v: %s is %d, the package says %d", version, profiled, name, value, got)
				}
				delete(want, name)
			}
			for name := range want {
				t.Errorf("GHC %s, profiled %v: the header files were not asked for %s", version, profiled, name)
			}
		}
	})
}

// The layout of each release is that of its sources, also where it changed within a series. There is no compiler of most of them.
func TestLayoutsAreThoseOfGHCsSources(t *testing.T) {
	text, err := os.ReadFile("testdata/layouts.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		version, way := f[0], Way("rts_"+f[1])
		l, known := LayoutOf(version, way.Profiled(), way.Threaded())
		if !known {
			t.Errorf("GHC %s is not known", version)
		}
		wide := uint16(2)
		if l.WhyBlockedWide {
			wide = 4
		}
		ours := map[string]uint16{
			"StgTSO.id": l.TSOID, "StgTSO.why_blocked": l.WhyBlocked, "sizeof_why_blocked": wide, "StgTSO.label": l.TSOLabel, "StgTSO": l.TSOWords,
			"StgTSO.tot_stack_size": l.TSOStackTotal, "StgTSO.prof.cccs": l.TSOCCCS, "StgTRecChunk": l.TRecChunkWords,
			"Capability.pinned_object_blocks": l.PinnedBlocks + BaseOfCapability, "Capability.total_allocated": l.TotalAllocated + BaseOfCapability,
			"Capability.spark_stats": l.SparkStats,
		}
		theirs := map[string]uint16{}
		for _, fact := range f[2:] {
			name, value, _ := strings.Cut(fact, "=")
			n, err := strconv.ParseUint(value, 10, 16)
			if err != nil {
				t.Fatalf("%q: %v", fact, err)
			}
			theirs[name] = uint16(n)
		}
		for name, got := range ours {
			if want := theirs[name]; got != want {
				t.Errorf("GHC %s, %s: %s is %d, the sources say %d", version, way, name, got, want)
			}
		}
	}
}

func TestArgWords(t *testing.T) {
	for funType, want := range map[uint32]int{3: 0, 4: 1, 15: 2, 16: 3, 24: 4, 28: 8} {
		if words, ok := ArgWords(funType); !ok || words != want {
			t.Errorf("function type %d has %d words, %v; want %d", funType, words, ok, want)
		}
	}
	for _, funType := range []uint32{ArgGen, ArgGenBig, ArgBCO, 29} {
		if words, ok := ArgWords(funType); ok {
			t.Errorf("function type %d has %d words, want none", funType, words)
		}
	}
}

func TestParseVersion(t *testing.T) {
	for s, want := range map[string]Version{"9.0.2": {9, 0}, "8.10.7": {8, 10}, "9.10": {9, 10}, "9.12.20240101": {9, 12}, "10.1.1": {10, 1}} {
		if v, err := ParseVersion(s); err != nil || v != want {
			t.Errorf("%q is %v, %v; want %v", s, v, err, want)
		}
	}
	for _, s := range []string{"", "9", "9.", "nine.0", "9.x.1", "-9.2", "9.+2"} {
		if v, err := ParseVersion(s); err == nil {
			t.Errorf("%q is %v, want an error", s, v)
		}
	}
}

// Every series from the oldest to the newest has the last row that is not of a later one;
// any other version is taken for the newest and said not to be known.
func TestLayoutOfEveryRelease(t *testing.T) {
	newest, _ := LayoutOf(Newest.String(), false, true)
	for version, want := range map[string]struct {
		id    uint16
		known bool
	}{
		"8.8.4": {56, false}, "8.10.7": {48, true}, "9.0.2": {48, true}, "9.8.4": {48, true}, "9.10.3": {56, true},
		"9.14.1": {56, true}, "9.15.20251020": {56, true}, "9.16.1": {56, false}, "10.0.1": {56, false}, "": {56, false},
	} {
		l, known := LayoutOf(version, false, true)
		if l.TSOID != want.id || known != want.known {
			t.Errorf("GHC %s: a thread's id is at %d, known %v; want %d, %v", version, l.TSOID, known, want.id, want.known)
		}
		if l.TickyEntries = newest.TickyEntries; !known && l != newest {
			t.Errorf("GHC %s: %+v is not the newest layout, %+v", version, l, newest)
		}
	}
	for _, version := range []string{"9.4.8", "", "9.16.1"} {
		if l, _ := LayoutOf(version, false, true); l.TickyEntries != 0 {
			t.Errorf("GHC %s: ticky counters' entries are at %d, want them not known", version, l.TickyEntries)
		}
	}
}

func TestProvenanceOf(t *testing.T) {
	for version, want := range map[string]ProvenanceFormat{
		"": ProvenanceNone, "8.8.4": ProvenanceNone, "9.0.2": ProvenanceNone, "9.2.8": ProvenanceList,
		"9.4.2": ProvenanceList, "9.4.3": ProvenanceInline6, "9.4.8": ProvenanceInline6, "9.4": ProvenanceInline6,
		"9.6.7": ProvenanceInline8, "9.8.4": ProvenanceApart8, "9.10.1": ProvenanceApart6Text, "9.10.2": ProvenanceApart6, "9.10.3": ProvenanceApart6,
		"9.14.1": ProvenanceApart6, "9.15.20251020": ProvenanceMarked6, "10.0.1": ProvenanceMarked6, "9.99.1": ProvenanceMarked6,
	} {
		if got := ProvenanceOf(version); got != want {
			t.Errorf("GHC %q has format %d, want %d", version, got, want)
		}
	}
}

func TestWays(t *testing.T) {
	for way, want := range map[Way][3]bool{
		"rts_v": {}, "rts_thr": {true}, "rts_thr_p": {true, true}, "rts_thr_debug_p_dyn": {true, true, true}, "rts_debug": {false, false, true}, "": {},
	} {
		if got := [3]bool{way.Threaded(), way.Profiled(), way.Debug()}; got != want {
			t.Errorf("%s is threaded, profiled, debug %v; want %v", way, got, want)
		}
	}
}
