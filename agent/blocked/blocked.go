// Package blocked samples for how long Haskell threads wait, in ns, and for what: an MVar, a black
// hole, a transaction's variables, a delay, a file descriptor, an exception to be taken, a foreign
// call.
//
// Nothing is put into the program, and nothing of it is stopped: what waiting costs at each switch of
// threads, where there may be half a million a second, cannot be probed. Time is cut into stretches,
// and at a random moment of each one the states of all threads are read from the program's memory
// (threads.Survey). A thread that waits then is a sample, with its stack, of the weight of the whole
// stretch: over many stretches that adds up to the time that it waits, without bias. Where there are
// more threads than are looked at, one of each k is drawn at random, at k times the weight.
//
// A thread that waits for a thunk which another one evaluates has that evaluation's code on its stack, with an update frame, as if it evaluated the thunk
// itself: which thunk it is can be seen from that alone, since a black hole has lost its code.
//
// Stretches become longer until looking keeps within its part of the budget. A stretch whose moment
// falls into a collection is looked at when that has ended: no thread runs, and so none changes its
// state, meanwhile.
//
// The processes of a host (host.go) are looked at together, less often, and all looks share one budget.
package blocked

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"ccagent/agent/dump"
	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/procfs"
	"ccagent/agent/sink"
	"ccagent/agent/source"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/heap/threads"
	"ccagent/perf"
)

// name is the event's.
const name = "blocked"

// Kind makes the source of what Haskell threads wait for. It recognises those of GHC's I/O manager
// by label.
func Kind() source.Kind {
	return source.Kind{Grant: grant, New: open, Needs: source.Labels, Known: known}
}

// HostKind is Kind for all processes of a host. It knows the labels that are in the threads themselves, as from GHC 9.6 on: probes for
// those of older releases would see none of a thread that has its label already.
func HostKind() source.Kind {
	return source.Kind{Grant: grant, New: open, Known: known}
}

func grant(asked string, _ perf.Rate) (*source.Event, bool, error) {
	return &source.Event{Samples: true, Def: eventlog.EventDef{
		Requested: name, Granted: name, Unit: "ns", RateMode: eventlog.RatePeriod,
	}}, asked == name, nil
}

func known() []source.Known {
	return []source.Known{{Name: name, Unit: "ns", About: "for how long Haskell threads wait"}}
}

// blocked is the source of waits of all processes of a capture.
type blocked struct {
	source.Base
	host   *source.Host
	event  *source.Event
	images map[uint32]*image // by process incarnation
	idleNs uint64            // of the I/O manager's threads
	terms  terms
	beat   stretches // when processes of a host are looked at; each of its stretches is terms.least long
	sum    float64   // of what looking at each of the images takes, ns
}

func open(h *source.Host, asked []*source.Event, _ source.Need) source.Source {
	if len(asked) == 0 {
		return nil
	}
	b := &blocked{host: h, event: asked[0], images: map[uint32]*image{}, terms: captureTerms}
	if h.OwnLogs {
		b.terms = hostTerms
	}
	b.beat = newStretches(perf.Monotonic(), b.terms.least)
	return b
}

// image is a process image whose threads are looked at.
type image struct {
	im          *process.Image
	reader      *threads.Reader
	survey      threads.Survey
	generations uint64
	searched    searches
	unfound     error // why its threads are not known, nil if they are
	failed      bool  // the user was warned
	stretches   stretches
	draw        draw
	samples     []sample          // of the last survey
	at          uint64            // when that was, ns
	cost        float64           // what it took with those that were in vain before it, ns
	pending     bool              // it is not yet known whether a collection ran meanwhile
	idle        uint64            // threads of the I/O manager in it
	labels      map[uint64]string // by thread's id: of threads that were seen in foreign calls
	unread      uint64            // stretches that went by while collections ran
	reported    uint64
}

// sample is a thread that was drawn.
type sample struct {
	tso    uint64
	label  string
	frames []uint64
	stop   eventlog.StopReason
	words  uint64 // skipped
}

// Attach prepares to look at a process.
func (b *blocked) Attach(im *process.Image) error {
	if im.RTS == nil || b.images[im.Incarnation] != nil || b.host.Excluded(im, name) != nil {
		return nil
	}
	b.images[im.Incarnation] = &image{
		im: im, reader: dump.Reader(im, b.terms.limits), labels: map[uint64]string{}, stretches: newStretches(perf.Monotonic(), b.terms.least),
		draw: draw{of: 1, most: b.terms.samples}, unfound: errNotFound,
	}
	return nil
}

// maxFrames are kept of the leaf side of a stack; as many again of the root side.
const maxFrames = 128

// terms are how often and how far is looked.
type terms struct {
	least   uint64 // length of a stretch, ns
	retry   uint64 // the longest wait until a look that was in vain is repeated, ns
	samples uint64 // of one look, about
	limits  threads.Limits
}

// captureTerms are of a capture, and give 20 looks a second.
var captureTerms = terms{
	least: uint64(50 * time.Millisecond), retry: uint64(32 * time.Millisecond), samples: 128,
	limits: threads.Limits{Threads: 1 << 20, Frames: maxFrames, StackWords: 1 << 16},
}

// Detach ends what there is of an image that has ended.
func (b *blocked) Detach(im *process.Image, _ uint64) error {
	bi := b.images[im.Incarnation]
	if bi == nil {
		return nil
	}
	delete(b.images, im.Incarnation)
	b.sum -= bi.stretches.cost
	return b.account(bi)
}

// Pace is how long it is to the next stretch's moment.
func (b *blocked) Pace(time.Duration) time.Duration {
	now, wait := perf.Monotonic(), source.Never
	for _, bi := range b.images {
		wait = min(wait, bi.stretches.wait(now))
	}
	return wait
}

// Throttle looks at the processes whose moment has come, but those of a host, which Look looks at.
func (b *blocked) Throttle(source.Use) error {
	if b.host.OwnLogs {
		return nil
	}
	return b.lookAtAll()
}

func (b *blocked) lookAtAll() error {
	for _, bi := range b.images {
		now := perf.Monotonic()
		if bi.im.Exited || bi.stretches.wait(now) > 0 {
			continue
		}
		if err := b.look(bi, now); err != nil {
			return err
		}
	}
	return nil
}

// look samples the threads of a process that wait.
func (b *blocked) look(bi *image, now uint64) error {
	runtime.LockOSThread() // overhead.ThreadCPU measures the calling thread
	defer runtime.UnlockOSThread()
	before := overhead.ThreadCPU()
	if bi.generations == 0 && !b.find(bi, now) {
		// It has no threads yet. A search is not repeated before its cost is made up for.
		bi.searched.rest(now, overhead.ThreadCPU()-before, b.shareOf(bi))
		bi.stretches.pass(now, b.terms.least)
		return nil
	}
	sure, err := bi.read(now)
	if !sure {
		bi.cost += float64(overhead.ThreadCPU() - before)
		bi.pending = err == nil && now-bi.at < uint64(mostPending)
		b.again(bi, now, err)
		return nil
	}
	bi.pending = false
	weight := bi.stretches.weight(bi.at)
	b.idleNs += bi.idle * weight * bi.draw.of
	for i := range bi.samples {
		if err := b.write(bi, &bi.samples[i], weight*bi.draw.of); err != nil {
			return err
		}
	}
	bi.draw.end()
	b.sum += bi.stretches.charge(bi.cost + float64(overhead.ThreadCPU()-before))
	bi.cost = 0
	bi.stretches.pass(bi.at, b.length(bi))
	return nil
}

// length is how long the stretches of a process have to be for looking to keep within its budget, ns.
func (b *blocked) length(bi *image) uint64 {
	length := max(b.terms.least, lengthFor(bi.stretches.cost, b.shareOf(bi)))
	if b.host.OwnLogs {
		length = max(length, lengthFor(b.sum, b.host.Budget.Asked*part))
	}
	return min(length, most)
}

// lengthFor is how long a stretch has to be for what a look costs to be a share of it; 0 is no bound.
func lengthFor(cost, share float64) uint64 {
	if share <= 0 {
		return 0
	}
	return uint64(min(cost/share, float64(most)))
}

// read makes a survey, unless one is pending, and reports whether it is sure.
func (bi *image) read(now uint64) (sure bool, err error) {
	asleep := func() bool { return procfs.Asleep(int(bi.im.PID)) }
	if !bi.pending {
		if err := bi.sample(asleep); err != nil {
			return false, err
		}
		bi.at = now
	}
	return bi.survey.Confirm(asleep)
}

// mostPending is for how long a survey waits to be confirmed, before another is made.
const mostPending = 100 * time.Millisecond

// again has a process looked at again soon: a collection ran, most likely.
func (b *blocked) again(bi *image, now uint64, err error) {
	if bi.stretches.retry(now, b.terms.retry) && errors.Is(err, threads.ErrMoving) {
		bi.unread++
	}
}

// sample reads what the threads do that are drawn.
func (bi *image) sample(asleep func() bool) error {
	bi.samples, bi.idle = bi.samples[:0], 0
	bi.draw.begin()
	return bi.reader.Survey(&bi.survey, bi.generations, asleep, func(t *threads.Thread) {
		// Who is drawn must not depend on what it does: that may have changed since.
		if !bi.draw.next() || !bi.survey.Look() {
			return
		}
		state := dump.State(t, false)
		switch {
		case !state.Waits():
		case state == eventlog.StateForeign && source.IOManager(bi.label(t)):
			bi.idle++
		default:
			bi.take(t, state)
		}
	})
}

// find finds a process's lists of threads, which are there once its run-time system has begun.
func (b *blocked) find(bi *image, now uint64) bool {
	if !bi.searched.again(now) {
		return false
	}
	ctx := context.Background()
	if b.host.OwnLogs {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, longestSearch)
		defer cancel()
	}
	at, _, err := dump.Generations(ctx, bi.im, bi.reader)
	bi.generations, bi.unfound = at, err
	if err == nil && at == 0 {
		bi.unfound = errNotFound
	}
	if err != nil && bi.searched.wait >= patience && !bi.failed {
		bi.failed = true
		b.host.Log.Warn(fmt.Sprintf("what threads of process %d wait for is not known: %v", bi.im.PID, err))
	}
	return err == nil && at != 0
}

// patience is after what wait between searches the user is warned, ns.
const patience = uint64(time.Second)

// part is the part of the budget that looking at threads has, of the time of one CPU: they are looked
// at beside the program, also while that uses little CPU time.
const part = 0.5

// shareOf is which part of a CPU's time looking at a process may take; 0 is no bound.
func (b *blocked) shareOf(bi *image) float64 { return b.host.BudgetOf(bi.im).Asked * part }

// label is the label of the thread that is looked at.
func (bi *image) label(t *threads.Thread) string {
	if known, ok := bi.labels[t.ID]; ok {
		return known
	}
	label := bi.survey.Label()
	if label == "" {
		return bi.im.Log.LabelOf(bi.im.PID, t.ID) // the release keeps none in the thread, or it comes later
	}
	if len(bi.labels) < maxLabels {
		bi.labels[t.ID] = label
	}
	return label
}

// maxLabels bounds the labels that are remembered.
const maxLabels = 1 << 14

// take adds the thread that is looked at to the samples.
func (bi *image) take(t *threads.Thread, state eventlog.ThreadState) {
	s := sample{tso: t.ID, label: bi.survey.Label(), stop: eventlog.StopMoved}
	wait := uint64(eventlog.FrameWait)<<bpf.FrameKindShift | uint64(state)
	if stack, stood := bi.survey.Stack(); stood {
		s.frames, s.stop = dump.Frames(&stack)
		s.words = stack.Skipped
		if on, ok := bi.survey.Evaluated(); ok {
			code, _ := dump.Frames(&threads.Stack{Frames: on[:], Leaf: len(on)})
			s.frames = append(code, s.frames...)
		}
	}
	s.frames = append([]uint64{wait}, s.frames...)
	bi.samples = append(bi.samples, s)
}

// write writes a sample.
func (b *blocked) write(bi *image, s *sample, weight uint64) error {
	if s.label != "" {
		if err := bi.im.Log.Label(bi.im.PID, s.tso, s.label); err != nil {
			return err
		}
	}
	_, err := b.host.Write(bi.im, &perf.Sample{SampleHeader: bpf.SampleHeader{
		Record: bpf.RecordSample, Event: uint16(b.event.Def.Index), Time: bi.at, Period: weight, Pid: bi.im.PID, Tso: s.tso,
		Capability: eventlog.NoCapability, Stop: uint8(s.stop), SkippedWords: s.words,
	}, Frames: s.frames})
	return err
}

// account writes what could not be read of a process since the last time.
func (b *blocked) account(bi *image) error {
	n := bi.unread - bi.reported
	if n == 0 {
		return nil
	}
	bi.reported = bi.unread
	return bi.im.Log.Lose(sink.Place{Event: int(b.event.Def.Index), Reason: eventlog.LossUnread}, n)
}

// Account writes what could not be read.
func (b *blocked) Account() error {
	for _, bi := range b.images {
		if err := b.account(bi); err != nil {
			return err
		}
	}
	return nil
}

// Report adds the time of idle threads to the summary.
func (b *blocked) Report(sum *source.Summary) {
	e := &sum.Events[b.event.Def.Index]
	e.Idle = time.Duration(b.idleNs)
	e.WhyNone = "no Haskell thread waited at a moment when they were looked at"
}
