package agent

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// placed is a process of the test program footprint, which has its memory in one place, and waits for a line.
type placed struct {
	*exec.Cmd
	in io.Writer
	// live is what it says is live, slop what of the blocks of that is not used, in bytes.
	live, slop uint64
}

func place(t *testing.T, o testprog.Options, args ...string) *placed {
	t.Helper()
	testprog.NeedRoot(t)
	p := &placed{Cmd: exec.Command(testprog.Build(t, "footprint", o), append(args, "+RTS", "-T")...)}
	in, out := testprog.Start(t, p.Cmd)
	p.in = in
	t.Cleanup(func() { _ = p.Process.Kill() })
	lines := bufio.NewReader(out)
	if _, err := fmt.Fscanf(lines, "live %d slop %d", &p.live, &p.slop); err != nil {
		t.Fatal(err)
	}
	for line, err := "", error(nil); line != "ready\n"; {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// end has the program end, which it does as it would have.
func (p *placed) end(t *testing.T) {
	t.Helper()
	if _, err := p.in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}

// An idle program is counted as it is, also one without symbols. What is alive from its roots is what its run-time system said at the last
// collection; it has made no other since.
func TestHeapAtRest(t *testing.T) {
	pie := []string{"-pie", "-fPIC"}
	for _, o := range []testprog.Options{
		{}, {Threaded: true}, {Strip: true}, {Dynamic: true}, {Threaded: true, Release: "9.10.3"},
		{Dynamic: true, Flags: pie}, {Threaded: true, Release: "9.6.6", Flags: pie}, {Threaded: true, Release: "9.10.3", Strip: true, Flags: pie},
	} {
		args := []string{"live", "8", "rest"}
		if o.Threaded {
			args = append(args, "+RTS", "-I0", "-N2", "-RTS") // no collection when it is idle
		}
		p := place(t, o, args...)
		path := filepath.Join(t.TempDir(), "heap.eventlog")
		h := HeapOptions{Options: Options{PID: p.Process.Pid, Output: path, Warn: func(string) {}}, Wait: time.Millisecond, Graph: true, GraphMemory: 1 << 30}
		sum, err := Heap(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		const slack = 256 << 10 // what it has allocated since, and uses
		g := sum.Graph
		if live := g.Bytes - g.UnreachedBytes; !sum.AtRest || !g.AtRest || live+slack < p.live || live > p.live+slack || g.Dangling > 0 {
			t.Errorf("%+v: at rest: %v; %d bytes are alive, where the program counts %d; %+v", o, sum.AtRest, live, p.live, g)
		}
		p.end(t)
	}
}

// footprintOf returns where the census of a program's heap finds its memory, what the program says is live, and
// what the kernel says of its memory afterwards.
func footprintOf(t *testing.T, kind string, mb int) (head *eventlog.Footprint, parts []eventlog.FootprintPart, pins []eventlog.FootprintPin, stacks []eventlog.FootprintStack, live, slop, rollup uint64) {
	t.Helper()
	cmd := place(t, testprog.Options{Threaded: true}, kind, fmt.Sprint(mb))
	path := filepath.Join(t.TempDir(), "heap.eventlog")
	o := HeapOptions{Options: Options{PID: cmd.Process.Pid, Output: path, Warn: func(string) {}}, Wait: time.Minute}
	if _, err := Heap(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "Rss:")
	if _, err := fmt.Sscan(rest, &rollup); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for r := eventlog.NewReader(bytes.NewReader(log)); r.Next(); {
		switch e := r.Record().Event.(type) {
		case *eventlog.Footprint:
			copied := *e
			head = &copied
		case *eventlog.FootprintPart:
			parts = append(parts, *e)
		case *eventlog.FootprintPin:
			pins = append(pins, *e)
		case *eventlog.FootprintStack:
			stacks = append(stacks, *e)
		}
	}
	if head == nil {
		t.Fatal("the log has no footprint")
	}
	cmd.end(t)
	return head, parts, pins, stacks, cmd.live, cmd.slop, rollup << 10
}

// A heap of the non-moving collector is counted, and its memory is divided.
func TestFootprintNonmoving(t *testing.T) {
	const mb = 16
	p := place(t, testprog.Options{Threaded: true}, "live", fmt.Sprint(mb), "rest", "+RTS", "--nonmoving-gc", "-I0", "-RTS") // no collection when it is idle
	path := filepath.Join(t.TempDir(), "heap.eventlog")
	h := HeapOptions{Options: Options{PID: p.Process.Pid, Output: path, Warn: func(string) {}}, Wait: time.Millisecond}
	sum, err := Heap(t.Context(), h)
	if err != nil || sum.Bands == 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all, resident, segments uint64
	for r := eventlog.NewReader(bytes.NewReader(log)); r.Next(); {
		switch e := r.Record().Event.(type) {
		case *eventlog.Footprint:
			resident = e.Resident
		case *eventlog.FootprintPart:
			all += e.Bytes
			if e.Kind == eventlog.FootprintNonmoving {
				segments = e.Bytes
			}
		}
	}
	if all != resident || segments < mb<<20 || segments > 4*mb<<20 {
		t.Errorf("segments have %d bytes, all parts %d of %d", segments, all, resident)
	}
	p.end(t)
}

// The memory of programs that have it in one place is found there; the sum of all parts is what the
// kernel counts, and what is live is what the program's own run-time system says.
func TestFootprint(t *testing.T) {
	const mb, slack = 32, 1 << 20
	for _, c := range []struct {
		kind  string
		parts []eventlog.FootprintKind
		bytes uint64 // that the parts have, up to 6 MB more
	}{
		{"pinned", []eventlog.FootprintKind{eventlog.FootprintFreeBlocks}, mb * 251 * 4096 * 9 / 10},
		{"malloc", []eventlog.FootprintKind{eventlog.FootprintMalloc, eventlog.FootprintAnonymous}, mb << 20},
		{"stack", []eventlog.FootprintKind{eventlog.FootprintStacks}, mb << 20},
		{"compact", []eventlog.FootprintKind{eventlog.FootprintCompact}, mb << 20},
		{"live", []eventlog.FootprintKind{eventlog.FootprintLive}, mb << 20},
		{"freed", []eventlog.FootprintKind{eventlog.FootprintGivenBack, eventlog.FootprintFree}, mb << 20},
	} {
		t.Run(c.kind, func(t *testing.T) {
			head, parts, pins, stacks, live, slop, rollup := footprintOf(t, c.kind, mb)
			sums := map[eventlog.FootprintKind]uint64{}
			all := uint64(0)
			for _, p := range parts {
				sums[p.Kind] += p.Bytes
				all += p.Bytes
			}
			if all != head.Resident || head.Beside {
				t.Errorf("the sum of its parts is %d, of %d", all, head.Resident)
			}
			if max(head.Resident, rollup)-min(head.Resident, rollup) > slack {
				t.Errorf("it has %d bytes, where the kernel counts %d", head.Resident, rollup)
			}
			got := uint64(0)
			for _, k := range c.parts {
				got += sums[k]
			}
			if got+slack < c.bytes || got > c.bytes+6<<20 && c.kind != "freed" {
				t.Errorf("%v have %d bytes, want %d: %+v", c.parts, got, c.bytes, parts)
			}
			// The run-time system counts a pinned block's arrays, not the block.
			if has := sums[eventlog.FootprintLive] + sums[eventlog.FootprintLarge] + sums[eventlog.FootprintStacks] + sums[eventlog.FootprintCompact] + sums[eventlog.FootprintPinned]; has+slack < live || has > live+slack {
				t.Errorf("%d bytes are live, where the program counts %d", has, live)
			}
			switch c.kind {
			case "live":
				if ends := sums[eventlog.FootprintBlockEnds]; max(ends, slop)-min(ends, slop) > slack/4 {
					t.Errorf("%d bytes of blocks are not used, where the program counts %d", ends, slop)
				}
			case "pinned":
				// An array is in each megablock; the nursery, which is in as few as it needs, pins some.
				if p := pins[0]; p.Kind != eventlog.FootprintPinned || p.Megablocks < mb*3/4 || p.Megablocks > mb+1 || p.Held < p.Count*4096 || p.Held > 2*p.Count*4096 || p.Count < p.Megablocks || p.Count > 2*p.Megablocks {
					t.Errorf("what holds megablocks: %+v", pins)
				}
			case "stack":
				if s := stacks[0]; s.Bytes < mb<<20 || s.Bytes > mb<<20+2*slack || head.Threads < 4 {
					t.Errorf("%d threads, with stacks of %+v", head.Threads, stacks[:1])
				}
			}
		})
	}
}
