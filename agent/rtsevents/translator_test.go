package rtsevents

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ccagent/bpf"
	"ccagent/eventlog"
)

// written collects events as lines "time cap Type{fields}".
type written []string

func (w *written) write(time uint64, cap int, e eventlog.Event) error {
	*w = append(*w, fmt.Sprintf("%d %d %s", time, cap, strings.TrimPrefix(fmt.Sprintf("%+v", e), "&")))
	return nil
}

func (w written) want(t *testing.T, lines ...string) {
	t.Helper()
	if !slices.Equal(w, lines) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(w, "\n  "), strings.Join(lines, "\n  "))
	}
}

func feed(t *testing.T, l *Translator, records ...Record) {
	t.Helper()
	for _, r := range records {
		if err := l.Take(r); err != nil {
			t.Fatal(err)
		}
	}
}

// A thread that is made, runs, blocks, is woken and finishes elsewhere.
func TestThread(t *testing.T) {
	var w written
	l := New(w.write)
	feed(t, l,
		Record{Time: 10, Probe: bpf.RTSCreate, Cap: 0, Thread: 7},
		Record{Time: 11, Probe: bpf.RTSRun, Cap: 0, Thread: 7},
		Record{Time: 12, Probe: bpf.RTSStop, Cap: 0, Thread: 7, Reason: 7},
		Record{Time: 13, Probe: bpf.RTSWakeup, Cap: 1, Thread: 7},
		Record{Time: 14, Probe: bpf.RTSRun, Cap: 1, Thread: 7},
		Record{Time: 15, Probe: bpf.RTSSuspend, Cap: 1, Thread: 7},
		Record{Time: 16, Probe: bpf.RTSResume, Cap: 1, Thread: 7},
		Record{Time: 17, Probe: bpf.RTSStop, Cap: 1, Thread: 7, Reason: 5},
		Record{Time: 18, Probe: bpf.RTSStop, Cap: 1, Thread: 7, Reason: 5}, // nothing runs
	)
	w.want(t,
		"10 -1 {Cap:0}", "10 -1 {Capset:0 Cap:0}", "10 0 {Thread:7}", "11 0 {Thread:7}", "12 0 {Thread:7 Status:7 Info:0}",
		"13 -1 {Cap:1}", "13 -1 {Capset:0 Cap:1}", "13 1 {Thread:7 OtherCap:0}", "14 0 {Thread:7 NewCap:1}", "14 1 {Thread:7}",
		"15 1 {Thread:7 Status:6 Info:0}", "16 1 {Thread:7}", "17 1 {Thread:7 Status:5 Info:0}")
}

// Nothing runs on into a gap, and in it nothing is written: which stretches are watched is, in
// events of ours and in markers.
func TestGap(t *testing.T) {
	const threads = int(bpf.RTSGroupThreads)
	var w written
	l := New(w.write)
	gap := func(g Gap) {
		t.Helper()
		g.Group = threads
		if err := l.Gap(g); err != nil {
			t.Fatal(err)
		}
	}
	gap(Gap{Time: 0})
	feed(t, l, Record{Time: 1, Probe: bpf.RTSRun, Thread: 3})
	gap(Gap{Time: 10, Begins: true})
	feed(t, l, Record{Time: 11, Probe: bpf.RTSRun, Thread: 3}, Record{Time: 12, Probe: bpf.RTSStop}, Record{Time: 13, Probe: bpf.RTSCreate, Thread: 5})
	gap(Gap{Time: 20})
	feed(t, l, Record{Time: 21, Probe: bpf.RTSRun, Thread: 4})
	if err := l.Close(30); err != nil {
		t.Fatal(err)
	}
	w.want(t, "0 -1 {Group:threads Watched:true}", "1 -1 {Cap:0}", "1 -1 {Capset:0 Cap:0}", "1 0 {Thread:3}", "1 0 {Thread:3}",
		"10 0 {Thread:3 Status:3 Info:0}", "10 -1 {Group:threads Watched:false}", "10 -1 {Text:ccagent: threads are not watched from here on}",
		"20 -1 {Group:threads Watched:true}", "20 -1 {Text:ccagent: threads are watched from here on}", "21 0 {Thread:4}", "21 0 {Thread:4}",
		"30 0 {Thread:4 Status:3 Info:0}", "30 -1 {Group:threads Watched:false}")
}

// Where records were dropped nothing is known since the CPU's last record, also if none comes
// after them.
func TestDroppedRecords(t *testing.T) {
	const threads = int(bpf.RTSGroupThreads)
	var w written
	l := New(w.write)
	feed(t, l,
		Record{Time: 1, Probe: bpf.RTSRun, Thread: 3, CPU: 1},
		Record{Time: 5, Probe: bpf.RTSRun, Cap: 1, Thread: 4, CPU: 0},
		Record{Time: 9, Probe: bpf.RTSStop, Reason: 5, CPU: 1, Dropped: 2}, // of an unknown run
		Record{Time: 9, Probe: bpf.RTSGCStart, CPU: 1, Dropped: 7})         // another group's
	w = w[len(w)-10:]
	w.want(t, "1 0 {Thread:3 Status:3 Info:0}", "5 1 {Thread:4 Status:3 Info:0}",
		"1 -1 {Group:threads Watched:false}", "1 -1 {Text:ccagent: threads are not watched from here on}",
		"9 -1 {Group:threads Watched:true}", "9 -1 {Text:ccagent: threads are watched from here on}",
		"0 -1 {Group:gc Watched:false}", "0 -1 {Text:ccagent: collections are not watched from here on}", "9 -1 {Group:gc Watched:true}", "9 -1 {Text:ccagent: collections are watched from here on}")
	w = nil
	feed(t, l, Record{Time: 12, Probe: bpf.RTSRun, Thread: 6, CPU: 1, Dropped: 2})
	w = nil
	if err := l.Gap(Gap{Time: 20, Group: threads, Begins: true, Dropped: []uint64{0, 3}}); err != nil {
		t.Fatal(err)
	}
	w.want(t, "12 0 {Thread:6 Status:3 Info:0}", "12 -1 {Group:threads Watched:false}", "12 -1 {Text:ccagent: threads are not watched from here on}")
}

// A collection's figures stand between its start and its end; those of the oldest
// generation are the live data.
func TestCollection(t *testing.T) {
	words := make([]uint64, bpf.GCFirstCapability+1)
	words[bpf.GCLive], words[bpf.GCCopied], words[bpf.GCSlop] = 1000, 100, 10
	words[bpf.GCGeneration], words[bpf.GCThreads] = 1, 1
	words[bpf.GCMBlocks], words[bpf.GCBlocks], words[bpf.GCCount] = 2, 500, 41
	words[bpf.GCFirstCapability] = 5000
	var w written
	l := New(w.write)
	l.MajorGeneration = 1
	feed(t, l, Record{Time: 5, Probe: bpf.RTSGCStart}, Record{Time: 25, Probe: bpf.RTSGCEnd, Words: words})
	w.want(t,
		"5 -1 {Cap:0}", "5 -1 {Capset:0 Cap:0}", "5 0 {}", "5 0 {}", "25 0 {Capset:0 Bytes:40000}", "25 0 {}",
		"25 0 {Capset:0 Generation:1 Copied:800 Slop:80 Frag:16384 Threads:1 MaxCopied:0 TotCopied:800 BalancedCopied:0}",
		"25 0 {Capset:0 Bytes:8000}", "25 0 {Capset:0 Bytes:2097152}", "25 0 {Capset:0 Bytes:2048000}", "25 0 {}", "25 0 {}")
	if got := l.Totals(); got.Collections != 1 || got.PauseNs != 20 || got.Copied != 800 || got.First != 41 || got.Last != 42 {
		t.Errorf("totals are %+v", got)
	}
}

// A parallel collection: others stop at the request, work, wait, and go on when the leader lets
// them; all is written as the run-time system would.
func TestParallelCollection(t *testing.T) {
	words := make([]uint64, bpf.GCFirstCapability)
	words[bpf.GCThreads], words[bpf.GCRequested], words[bpf.GCStarted] = 2, 10, 20
	var w written
	l := New(w.write)
	l.Synced = true
	feed(t, l,
		Record{Time: 1, Probe: bpf.RTSRun, Cap: 1, Thread: 4}, Record{Time: 11, Probe: bpf.RTSStop, Cap: 1, Reason: 1},
		Record{Time: 12, Probe: bpf.RTSWorkerStart, Cap: 1, Task: 77},
		Record{Time: 27, Probe: bpf.RTSWorkerDone, Cap: 1, Task: 77},
		Record{Time: 30, Probe: bpf.RTSGCEnd, Cap: 0, Task: 76, Words: words},
		Record{Time: 31, Probe: bpf.RTSWorkerEnd, Cap: 0xffff, Task: 76}, // not a worker
		Record{Time: 33, Probe: bpf.RTSWorkerEnd, Cap: 0xffff, Task: 77},
		Record{Time: 40, Probe: bpf.RTSFlushStart, Cap: 0xffff}, Record{Time: 45, Probe: bpf.RTSFlushEnd, Cap: 0xffff})
	w = w[5:]
	w.want(t, "30 -1 {Cap:0}", "30 -1 {Capset:0 Cap:0}", "10 0 {}", "20 0 {}", "20 0 {}", "12 1 {}", "20 1 {}", "27 1 {}", "30 0 {}",
		"30 0 {Capset:0 Generation:0 Copied:0 Slop:0 Frag:0 Threads:2 MaxCopied:0 TotCopied:0 BalancedCopied:0}",
		"30 0 {}", "30 0 {}", "33 1 {}", "40 -1 {}", "45 -1 {}")
	if got := l.Totals(); got.PauseNs != 20 {
		t.Errorf("totals are %+v", got)
	}
	// A request from before the last collection, or in the future, is none.
	for _, requested := range []uint64{29, 51} {
		words[bpf.GCRequested], words[bpf.GCStarted] = requested, 50
		l.gc.PauseNs = 0
		feed(t, l, Record{Time: 60, Probe: bpf.RTSGCEnd, Cap: 0, Words: words})
		if got := l.Totals(); got.PauseNs != 10 {
			t.Errorf("requested at %d: totals are %+v", requested, got)
		}
		l.gc.lastEnd = 30
	}
}

// Of a collection that runs into a gap nothing is written but that capabilities go on whose
// collection had ended.
func TestCollectionIntoGap(t *testing.T) {
	words := make([]uint64, bpf.GCFirstCapability)
	words[bpf.GCThreads], words[bpf.GCRequested], words[bpf.GCStarted] = 2, 10, 20
	var w written
	l := New(w.write)
	l.Synced = true
	feed(t, l, Record{Time: 12, Probe: bpf.RTSWorkerStart, Cap: 1, Task: 77}, Record{Time: 30, Probe: bpf.RTSGCEnd, Cap: 0, Words: words})
	w = nil
	if err := l.Gap(Gap{Time: 5000, Group: int(bpf.RTSGroupGC), Begins: true}); err != nil {
		t.Fatal(err)
	}
	if err := l.Gap(Gap{Time: 5500, Group: int(bpf.RTSGroupGC)}); err != nil {
		t.Fatal(err)
	}
	feed(t, l, Record{Time: 6000, Probe: bpf.RTSGCStart}, Record{Time: 6010, Probe: bpf.RTSWorkerStart, Cap: 1, Task: 77})
	if err := l.Close(9000); err != nil {
		t.Fatal(err)
	}
	w.want(t, "30 1 {}", "5000 -1 {Group:gc Watched:false}", "5000 -1 {Text:ccagent: collections are not watched from here on}", "5500 -1 {Group:gc Watched:true}",
		"5500 -1 {Text:ccagent: collections are watched from here on}", "9000 -1 {Group:gc Watched:false}")
}

// FuzzTake: whatever a hostile program makes the probes send, the log is well formed,
// and each capability's events are in an order that readers' state machines take.
func FuzzTake(f *testing.F) {
	f.Add([]byte{0, 4, 0, 1, 0, 5, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0})
	f.Add([]byte{200, 4, 1, 1, 201, 0, 0, 0, 0, 4, 1, 1, 0, 9, 1, 2})
	// A capability that no program has, and a thread whose id has 32 low bits of 0.
	f.Add([]byte{0, 4, 4, 1, 0, 5, 4, 1, 128, 0, 4, 1, 0, 4, 8, 0, 0, 7, 8, 0, 0, 4, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		log := eventlog.NewWriter(&out, nil)
		var running [256]bool
		var collecting [256]bool
		l := New(func(time uint64, cap int, e eventlog.Event) error {
			if cap >= 0 {
				var state *bool
				var want bool
				switch e.(type) {
				case *eventlog.RunThread:
					state, want = &running[cap], true
				case *eventlog.StopThread:
					state = &running[cap]
				case *eventlog.GCStart:
					state, want = &collecting[cap], true
				case *eventlog.GCEnd:
					state = &collecting[cap]
				}
				if state != nil {
					if *state == want {
						t.Fatalf("%T on capability %d twice", e, cap)
					}
					*state = want
				}
			}
			return log.Write(time, cap, e)
		})
		l.MajorGeneration = 1
		var now uint64
		for ; len(data) >= 4; data = data[4:] {
			now += uint64(data[0] & 63)
			var err error
			switch cap, tso := int(data[2]&3)|int(data[2]&4)<<18, uint64(data[3])|uint64(data[2]&8)<<32; data[0] >> 6 {
			case 3:
				err = l.Gap(Gap{Time: now, Group: int(data[1] & 1), Begins: data[1]&2 != 0, Dropped: []uint64{uint64(data[2])}})
			default:
				r := Record{Time: now, Probe: bpf.RTSProbe(data[1] & 31), Cap: cap, Task: uint32(data[3]), CPU: uint32(data[2] & 1), Dropped: uint64(data[3] >> 6), Thread: tso, Reason: uint64(data[3]) << (data[1] >> 4)}
				l.Synced = data[0]&32 != 0
				if r.Probe == bpf.RTSGCEnd {
					r.Words = make([]uint64, data[3]&31)
					for i := range r.Words {
						r.Words[i] = binary.LittleEndian.Uint64(append(bytes.Clone(data[:4]), data[:4]...))
					}
				}
				err = l.Take(r)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(now); err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		r := eventlog.NewReader(&out)
		for r.Next() {
			if bad, ok := r.Record().Event.(*eventlog.Malformed); ok {
				t.Fatalf("malformed: %v", bad)
			}
		}
		if err := r.Err(); err != nil || !r.Complete() {
			t.Fatalf("read it back: %v", err)
		}
	})
}
