package rtsites

import (
	"os/exec"
	"path/filepath"
	"testing"

	"ccagent/bpf"
	"ccagent/internal/elftest"
	"ccagent/internal/testprog"
)

func open(t *testing.T, path string) *Symbols {
	t.Helper()
	f := elftest.Open(t, path)
	s, err := ReadSymbols(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every release and way has all sites, at instructions that the kernel emulates;
// only the labelling of threads, which is rare, may be anywhere.
func TestFind(t *testing.T) {
	for _, release := range testprog.Releases {
		for _, threaded := range []bool{false, true} {
			name := "GHC " + release
			if threaded {
				name += " threaded"
			}
			t.Run(name, func(t *testing.T) {
				f := open(t, testprog.Build(t, "threads100", testprog.Options{Release: release, Threaded: threaded}))
				s, err := Find(f)
				if err != nil {
					t.Fatal(err)
				}
				found := map[bpf.RTSProbe]int{}
				for _, site := range append(s.GC.Sites, s.Threads.Sites...) {
					found[site.Probe]++
					if !site.Emulated && site.Probe != bpf.RTSLabelCString {
						t.Errorf("probe %d at %#x has to be single-stepped", site.Probe, site.Addr)
					}
				}
				for _, g := range []Group{s.GC, s.Threads} {
					if g.Err != nil || len(g.Lacks) > 0 {
						t.Errorf("a group lacks %q: %v", g.Lacks, g.Err)
					}
				}
				want := map[bpf.RTSProbe]int{
					bpf.RTSGCStart: 0, bpf.RTSGCEnd: 1, bpf.RTSRun: 1, bpf.RTSStop: 5, bpf.RTSSuspend: 1,
					bpf.RTSResume: 1, bpf.RTSWakeup: 1, bpf.RTSCreate: 1,
				}
				if threaded {
					want[bpf.RTSWorkerStart], want[bpf.RTSWorkerDone], want[bpf.RTSWorkerEnd] = 1, 1, 1
					want[bpf.RTSFlushStart], want[bpf.RTSFlushEnd] = 1, 1
				}
				for probe, n := range want {
					if found[probe] != n {
						t.Errorf("probe %d has %d sites, want %d", probe, found[probe], n)
					}
				}
				if found[bpf.RTSLabelArray]+found[bpf.RTSLabelCString] != 1 {
					t.Error("no site reports thread labels")
				}
				if s.GCTimes == 0 || s.GCTimes%8 != 0 || s.Threaded != threaded {
					t.Errorf("the times of a GC are at %d; threaded: %v", s.GCTimes, s.Threaded)
				}
				for what, at := range map[string]uint64{
					"mblocks_allocated": s.MBlocks, "n_alloc_blocks": s.Blocks, "capabilities": s.Array,
					"n_capabilities": s.Count, "stats": s.Stats, "oldest_gen": s.OldestGeneration, "RtsFlags": s.Flags,
				} {
					if at == 0 {
						t.Errorf("%s was not found", what)
					}
				}
			})
		}
	}
}

// Without symbols there is no site, and the error says what helps.
func TestStripped(t *testing.T) {
	strip := testprog.NeedTool(t, "strip", "binutils")
	stripped := filepath.Join(t.TempDir(), "stripped")
	if out, err := exec.Command(strip, "-o", stripped, testprog.Build(t, "threads100", testprog.Options{})).CombinedOutput(); err != nil {
		t.Fatalf("strip: %v\n%s", err, out)
	}
	if _, err := Find(open(t, stripped)); err != ErrNoSymbols {
		t.Errorf("a stripped program: %v", err)
	}
}
