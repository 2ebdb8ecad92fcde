package eventlog

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// text shows a log: header, then offset, time, capability and event a line.
func text(log []byte) string {
	var b strings.Builder
	r := NewReader(bytes.NewReader(log))
	for first := true; r.Next(); first = false {
		if first {
			for _, et := range r.Types() {
				fmt.Fprintf(&b, "type %d size %d %q\n", et.ID, et.Size, et.Desc)
			}
		}
		rec := r.Record()
		name := strings.TrimPrefix(fmt.Sprintf("%T", rec.Event), "*eventlog.")
		fmt.Fprintf(&b, "%d\t%d\t%d\t%s%s\n", rec.Offset, rec.Time, rec.Cap, name, strings.TrimPrefix(fmt.Sprintf("%+v", rec.Event), "&"))
	}
	fmt.Fprintf(&b, "complete %t, error %v\n", r.Complete(), r.Err())
	return b.String()
}

// Each committed log reads as the text beside it. Logs of ours are never rewritten: later
// versions must read them. A log is generated only if it does not exist.
func TestGolden(t *testing.T) {
	const ours = "testdata/ours/v1.eventlog"
	if _, err := os.Stat(ours); *update && errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(ours, mixedLog(t, 1), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	logs, err := filepath.Glob("testdata/*/*.eventlog")
	if err != nil || len(logs) < 7 {
		t.Fatalf("logs in testdata: %v, %v", logs, err)
	}
	for _, name := range logs {
		log, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		golden := strings.TrimSuffix(name, ".eventlog") + ".txt"
		got := text(log)
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			i := firstDifference([]byte(got), want)
			t.Errorf("%s: differs from %s after\n%s", name, golden, got[max(0, strings.LastIndex(got[:i], "\n")):min(len(got), i+200)])
		}
	}
}

// The layouts of our own events are fixed, byte for byte.
func TestOwnPayloads(t *testing.T) {
	for _, c := range []struct {
		ev   Event
		want string
	}{
		{&Sample{Event: 1, CPU: 2, PID: 300, TID: 301, Capability: NoCapability, TSO: 5, Weight: 1 << 20, Node: 7, Stop: StopBudget, Flags: SampleViaC},
			"01 02 ac02 ad02 ffff03 05 808040 07 02 08"},
		{&Sample{SkippedWords: 0, FoldedFrames: 3}, "00 00 00 00 00 00 00 00 00 00 00 03"},
		{&Sample{Centres: 4}, "00 00 00 00 00 00 00 00 00 00 00 00 04"},
		{&CentreDef{ID: 1, Label: "f", Module: "M", SrcLoc: "", CAF: true}, "01 01 66 01 4d 00 01"},
		{&CentreStack{ID: 300, Parent: 2, Centre: 1, Problem: CentreImplausible}, "ac02 02 01 02"},
		{&Closure{ID: 1, Module: 2, Addr: 0x80, Type: 15, Name: ""}, "01 02 8001 0f 00"},
		{&NurseryBlock{PID: 1, Capability: 2, Places: 256, Total: 3, Used: 4096, Read: 4096, Closures: []ClosureCount{{1, 2, 128}, {0, 1, 8}}},
			"01 02 8002 03 8020 8020 02 01 02 8001 00 01 08"},
		{&ThreadDump{PID: 1, TookNs: 2, PauseNs: 3, Stopped: 4, Collections: 5, More: true, Notes: []string{"x"}, StoodNs: 6}, "01 02 03 04 05 01 01 01 78 06"},
		{&HaskellThread{TSO: 1, Label: "l", State: StateSTM, Capability: 2, Bound: true, TID: 3, On: 4, FD: 5, Moved: true, Node: 6, Stop: StopBudget,
			StackBytes: 7, StackUsed: 8, SkippedWords: 9}, "01 01 6c 05 02 01 03 04 05 01 06 02 07 08 09"},
		{&Blocker{ID: 1, Kind: BlockerBlackHole, Address: 16, Full: true, Stood: true, Owner: 2, Queue: []uint64{3}, Holders: []BlockerHolder{{4, true}},
			Variables: []uint64{5}, Entries: 6, Node: 7}, "01 01 10 01 01 02 01 03 01 04 01 01 05 06 07"},
		{&TransactionWindow{PID: 1, LengthNs: 2, StandsNs: 3, SlowedNs: 13, Begun: 14, BegunStands: 15, Ends: [TransactionEnds]uint64{4, 5, 6, 7}, Noted: 8, Sampled: [TransactionEnds]uint64{9, 10, 11, 12}},
			"01 02 03 0d 0e 0f 04 05 06 07 08 09 0a 0b 0c"},
		{&TransactionVariables{PID: 1, End: TransactionFailed, Attempts: 300, Node: 2, Variables: []TransactionVariable{{0x80, 3}}}, "01 01 ac02 02 01 8001 03"},
		{&SearchWindow{PID: 1, Places: 2, Unknown: 3, LengthNs: 4, StandsNs: 5, Made: 6, Sampled: 7, Late: 1}, "01 02 03 04 05 06 07 01"},
		{&HeapGraph{PID: 1, Closures: 2, Pointers: 3, Bytes: 4, Unreached: 5, UnreachedBytes: 6, Dangling: 7, PauseNs: 8, TookNs: 9, Beside: true, CAFs: 10,
			Threads: 11, StablePtrs: 12, Weaks: 13, Notes: []string{"n"}, AtRest: true, Complete: true, Stuck: 14, StuckKnown: true}, "01 02 03 04 05 06 07 08 09 01 0a 0b 0c 0d 01 01 6e 01 01 0e 01"},
		{&Sparks{1, 2, 3, 4, 5, 6}, "01 02 03 04 05 06"},
		{&HeapStuck{TSO: 1, Label: "l", Kind: BlockerSTM, Held: true}, "01 01 6c 03 01"},
		{&HeapBand{Closure: 1, Count: 2, Bytes: 3, Retained: 4, Largest: 5}, "01 02 03 04 05"},
		{&HeapRoot{ID: 1, Kind: HeapRootThread, Closure: 2, TSO: 3, Label: "l", Number: 4, Retained: 5}, "01 02 02 03 01 6c 04 05"},
		{&HeapBranch{Parent: 1, Closure: 2, Root: 3, Count: 4, Bytes: 5, Retained: 6}, "01 02 03 04 05 06"},
		{&HeapPath{Closure: 1, Root: 2, Count: 3, Bytes: 4, Retained: 5, Steps: []HeapStep{{6, 7, 8, 9}}}, "01 02 03 04 05 01 06 07 08 09"},
		{&Footprint{PID: 1, Resident: 2, Swapped: 3, Beside: true, Slop: 4, StackBytes: 5, Threads: 6, Megablocks: 7, Partly: 8, Notes: []string{"n"}},
			"01 02 03 01 04 05 06 07 08 01 01 6e"},
		{&FootprintPart{Kind: FootprintLive, Generation: 1, Name: "n", Bytes: 2, Mapped: 3, Count: 4}, "01 01 01 6e 02 03 04"},
		{&FootprintPin{Kind: FootprintPinned, Name: "n", Moved: true, Megablocks: 1, Free: 2, Held: 3, Count: 5}, "04 01 6e 01 01 02 03 05"},
		{&FootprintStack{TSO: 1, Label: "l", Bytes: 2}, "01 01 6c 02 00"},
		{&OSThread{TID: 1, Name: "o", State: 'S', Role: OSThreadCalls, TSO: 3}, "01 01 6f 53 02 03"},
		// A node's parent stands as the distance to it.
		{&Nodes{First: 10, Nodes: []Node{{Parent: 0, Kind: FrameStop, Module: 1, Addr: 0x80}, {Parent: 10, Kind: FrameUpdate, Module: 0, Addr: 1}}},
			"0a 02 0a 08 01 8001 01 02 00 01"},
		{&Module{ID: 1, Path: "/x", BuildID: []byte{0xab, 0xcd}, Size: 9, ModTime: -2, GHCVersion: ""},
			"01 02 2f78 02 abcd 09 03 00"},
		{&Mapping{PID: 1, Module: 2, Start: 0x1000, End: 0x2000, Bias: 1<<64 - 1}, "01 02 8020 8040 ffffffffffffffffff01"},
		{&Process{Change: ProcessExited, PID: 3, Comm: "c"}, "03 03 00 01 63 00"},
		{&EventDef{Index: 0, Requested: "cycles", Granted: "cpu-clock", Fallback: "no PMU", Unit: "ns", RateMode: RatePeriod, Rate: 997},
			"00 06 6379636c6573 09 6370752d636c6f636b 06 6e6f20504d55 02 6e73 01 e507"},
		{&Loss{CPU: 1, Event: 2, Reason: LossNested, Count: 4}, "01 02 02 04"},
		{&CaptureEnd{Reason: EndFailed, Detail: "x", ExitStatus: 137, HaveStatus: true}, "03 01 78 8901 01"},
		{&Span{1, 2, 3, 4, 5, 6, 7}, "01 02 03 04 05 06 07"},
		{&Block{ID: 1, Module: 1, Lo: 16, Hi: 32, Binding: 4, Enclosing: []uint32{5, 6}, Causes: []Cause{{7, 0}, {8, 1}}},
			"01 01 10 20 04 02 05 06 02 07 00 08 01"},
		{&Locations{Module: 1, Locations: []Location{{Addr: 16, Block: 1, Binding: 2, Offset: 3, Quality: QualityNear, Category: CategoryGC, Lines: []Line{{2, 1, 44}}}}},
			"01 01 10 01 02 03 02 03 01 02 01 2c"},
	} {
		k := codec{encoding: true}
		c.ev.layout(&k)
		if got, want := fmt.Sprintf("%x", k.buf), strings.ReplaceAll(c.want, " ", ""); got != want {
			t.Errorf("%T: %s, want %s", c.ev, got, want)
		}
	}
}
