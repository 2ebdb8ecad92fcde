// Package ticky reads the counters that programs compiled with -ticky keep: of a process that
// ends where its run-time system shuts down, of others at the capture's end.
package ticky

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf"

	"ccagent/agent/process"
	"ccagent/agent/sink"
	"ccagent/agent/source"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/perf"
)

// maxTicky bounds the counters of a program; the walker has the same limit.
const maxTicky = 1 << 17

// symbols are the places in a run-time system that ticky counters are read by,
// as module addresses.
type symbols struct {
	head     uint64 // ticky_entry_ctrs: the first of the linked counters
	shutdown uint64 // shutdownHaskellAndExit
}

// count is what a counter has counted.
type count struct{ entries, allocs, allocated uint64 }

// counter identifies a counter, independently of the process.
type counter struct {
	name, kinds string
	arity       uint16
}

// address is that of a counter in a process.
type address struct {
	incarnation uint32
	counter     uint64
}

// ticky is the source of all ticky counters of a capture.
type ticky struct {
	source.Base
	host    *source.Host
	program *ebpf.Program // once a program that counts was seen
	places  map[*process.Module]*symbols
	links   map[uint32]io.Closer // probes, by process incarnation
	// before is what counters had counted when their process was first seen.
	before map[address]count
	ended  map[uint32]bool // incarnations whose counters were taken
	totals map[counter]count
	warned bool
}

// Kind makes the source of ticky counters, which are recorded without being asked for.
func Kind() source.Kind { return source.Kind{New: open} }

func open(h *source.Host, _ []*source.Event, _ source.Need) source.Source {
	return &ticky{
		host: h, places: map[*process.Module]*symbols{}, links: map[uint32]io.Closer{},
		before: map[address]count{}, ended: map[uint32]bool{}, totals: map[counter]count{},
	}
}

// find looks for the counters of an image's run-time system, nil if it counts
// nothing. Programs compiled with -ticky are linked with the debugging way's.
func (t *ticky) find(im *process.Image) *symbols {
	if im.RTS == nil || !im.RTS.Binary.Way.Debug() {
		return nil
	}
	s, known := t.places[im.RTS]
	if !known {
		var err error
		if s, err = findTicky(im.RTS); err != nil {
			t.fail(err)
		}
		t.places[im.RTS] = s
	}
	return s
}

func findTicky(mod *process.Module) (*symbols, error) {
	rts, err := mod.RTSSymbols()
	if err != nil {
		return nil, err
	}
	s := &symbols{head: rts.Addr(ghc.SymTickyCounters), shutdown: rts.Addr(ghc.SymShutdown)}
	if s.head == 0 || s.shutdown == 0 {
		return nil, nil
	}
	return s, nil
}

func (t *ticky) fail(err error) {
	if !t.warned {
		t.warned = true
		t.host.Log.Warn(fmt.Sprintf("ticky counters are not read: %v; samples are not affected", err))
	}
}

// Prepare adds the address of an image's counters to the walker's layout.
func (t *ticky) Prepare(im *process.Image) {
	s := t.find(im)
	if s == nil {
		return
	}
	b := &im.RTS.Binary
	layout, _ := ghc.LayoutOf(b.GHCVersion, b.Profiled(), b.Threaded())
	if layout.TickyEntries == 0 {
		t.fail(fmt.Errorf("their layout in GHC %s is not known", b.GHCVersion))
		return
	}
	im.Layout.TickyHead, im.Layout.TickyEntries = s.head+im.BiasOf(im.RTS), layout.TickyEntries
}

// Attach puts the probe into an image's process, once, and notes what a process
// that ran already has counted.
func (t *ticky) Attach(im *process.Image) error {
	s := t.find(im)
	if s == nil || im.Layout.TickyHead == 0 || t.links[im.Incarnation] != nil {
		return nil
	}
	if !im.FromStart {
		t.read(im, func(r *bpf.TickyRecord) {
			t.before[address{im.Incarnation, r.Counter}] = count{r.Entries, r.Allocs, r.Allocated}
		})
	}
	if err := t.put(im, s); err != nil {
		t.fail(err)
	}
	return nil
}

func (t *ticky) put(im *process.Image, s *symbols) (err error) {
	if t.program == nil {
		if t.program, err = t.host.Walker.ShutdownProgram(); err != nil {
			return err
		}
	}
	probe, err := im.Put(t.program, false, process.Probe{Addr: s.shutdown})
	if err == nil {
		t.links[im.Incarnation] = probe
	}
	return err
}

// Detach removes the probe of an image that has ended. If its counters were not read by then they
// are lost, and reported as such; except for a forked copy of its parent that executes another
// program, which has counted next to nothing.
func (t *ticky) Detach(im *process.Image, _ uint64) error {
	l := t.links[im.Incarnation]
	if l == nil {
		return nil
	}
	l.Close() // the kernel removed it with the process
	delete(t.links, im.Incarnation)
	if !t.ended[im.Incarnation] && !im.Forked {
		t.host.Log.Warn(fmt.Sprintf("the ticky counters of process %d are lost: it ended without its run-time system shutting down, or there was no room for them", im.PID))
	}
	return nil
}

const tickyWords = int(unsafe.Sizeof(bpf.TickyRecord{})) / 8

// Receives returns the type of the record of a counter of a process that ends.
func (t *ticky) Receives() []uint8 { return []uint8{bpf.RecordTicky} }

// Consume adds the walker's record of counters.
func (t *ticky) Consume(r *perf.Sample) error {
	im, err := t.host.Image(r.Pid)
	if err != nil {
		return err
	}
	t.take(im, r.Frames)
	return nil
}

func (t *ticky) take(im *process.Image, words []uint64) {
	t.ended[im.Incarnation] = true
	for ; len(words) >= tickyWords; words = words[tickyWords:] {
		t.add(im, (*bpf.TickyRecord)(unsafe.Pointer(&words[0])))
	}
}

// add adds what a counter has counted since its process was first seen.
func (t *ticky) add(im *process.Image, r *bpf.TickyRecord) {
	was := t.before[address{im.Incarnation, r.Counter}]
	name := counter{im.ReadName(r.Name), im.ReadName(r.Kinds), uint16(min(r.Arity, 1<<16-1))}
	sum, known := t.totals[name]
	if name.name == "" || !known && len(t.totals) >= maxTicky {
		return
	}
	sum.entries += r.Entries - min(was.entries, r.Entries)
	sum.allocs += r.Allocs - min(was.allocs, r.Allocs)
	sum.allocated += r.Allocated - min(was.allocated, r.Allocated)
	t.totals[name] = sum
}

// read reads the counters of a running process. The list is the process's own: it
// may be a circle, or lead anywhere.
func (t *ticky) read(im *process.Image, each func(*bpf.TickyRecord)) {
	first, err := im.Memory.Word(im.Layout.TickyHead)
	if err != nil {
		return // it has ended
	}
	seen := make(map[uint64]bool)
	words := make([]uint64, int(im.Layout.TickyEntries)/8+3)
	for at := first; at != 0 && !seen[at] && len(seen) < maxTicky; {
		seen[at] = true
		if im.Memory.Words(at, words) != nil {
			return
		}
		rest := words[len(words)-3:]
		each(&bpf.TickyRecord{Counter: at, Arity: words[ghc.TickyArity/8], Allocated: words[ghc.TickyAllocated/8],
			Name: words[ghc.TickyName/8], Kinds: words[ghc.TickyKinds/8], Entries: rest[0], Allocs: rest[1]})
		at = rest[2]
	}
}

// Finish reads the counters of processes that go on, and writes what all have counted, as
// the run-time system's eventlog has it.
func (t *ticky) Finish(uint64) error {
	for _, im := range t.host.Processes.Images {
		if im.Layout.TickyHead != 0 && !im.Exited && !t.ended[im.Incarnation] {
			t.read(im, func(r *bpf.TickyRecord) { t.add(im, r) })
		}
	}
	emit := func(e eventlog.Event) error { return t.host.Log.Emit(sink.Now, e) }
	if len(t.totals) == 0 {
		return nil
	}
	names := make([]counter, 0, len(t.totals))
	for n := range t.totals {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b counter) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.kinds, b.kinds), cmp.Compare(a.arity, b.arity))
	})
	for i, n := range names {
		if err := emit(&eventlog.TickyCounterDef{Counter: uint64(i + 1), Arity: n.arity, Kinds: n.kinds, Name: n.name}); err != nil {
			return err
		}
	}
	if err := emit(&eventlog.TickyBeginSample{}); err != nil {
		return err
	}
	for i, n := range names {
		c := t.totals[n]
		if err := emit(&eventlog.TickyCounterSample{Counter: uint64(i + 1), Entries: c.entries, Allocs: c.allocs, Allocated: c.allocated}); err != nil {
			return err
		}
	}
	return nil
}

// Close removes all probes.
func (t *ticky) Close() error {
	var err error
	for _, l := range t.links {
		err = errors.Join(err, l.Close())
	}
	t.links = nil
	return err
}
