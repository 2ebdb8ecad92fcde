package activity

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/interval"
)

// State is what a capability does.
type State uint8

const (
	Mutator   State = iota // runs a Haskell thread, with what it calls and the kernel on its behalf
	GC                     // collects, with the kernel on behalf of that
	GCWaiting              // has stopped for a collection and waits on a CPU for other capabilities
	Scheduler              // runs the run-time system's other code
	Off                    // is on no CPU: idle, waiting for one, or blocked in the kernel
	States
)

// String returns the name of the state.
func (s State) String() string {
	return [...]string{"mutator", "gc", "gc waiting", "scheduler", "off the CPU", "?"}[min(s, States)]
}

// Share is a part of the time, as a fraction of it.
type Share struct {
	Of      float64
	Samples uint64
	interval.Interval
}

// Capability is how a capability spent the time. The shares sum to 1.
type Capability struct {
	PID    uint32
	Cap    uint32
	Shares [States]Share
}

// Thread is the part of the time in which a Haskell thread ran.
type Thread struct {
	PID   uint32
	TSO   uint64
	Label string
	Share
}

// Activity is how capabilities and threads spent a stretch of time.
type Activity struct {
	From, To     uint64 // ns: the stretch
	Ns           uint64 // of it, but for gaps in the log
	Capabilities []Capability
	Threads      []Thread // those that were seen to run, most first
}

// capKey and threadKey distinguish processes.
type (
	capKey struct {
		pid uint32
		cap uint32
	}
	threadKey struct {
		pid uint32
		tso uint64
	}
)

// Of returns the activity in a selection, which must be of an event that counts time in ns; for
// others it is nil. The time is that from the selection's first sample on a capability to its
// last.
func Of(s *profile.Selection) *Activity {
	if s.Event < 0 || s.EventDef().Unit != "ns" {
		return nil
	}
	p := s.Profile
	from, to := ^uint64(0), uint64(0)
	for _, x := range s.EachSample() {
		if x.Capability != eventlog.NoCapability {
			from, to = min(from, x.Time), max(to, x.Time)
		}
	}
	if from >= to {
		return nil
	}
	n := &counter{from: from, to: to, step: (to-from)/interval.Batches + 1, caps: map[capKey]*[Off]interval.Part{}, threads: map[threadKey]*interval.Part{}}
	collecting := p.Collecting()
	for _, x := range s.EachSample() {
		if x.Capability == eventlog.NoCapability || x.Time < from || x.Time > to {
			continue
		}
		state := Scheduler
		switch flags := collecting[x.Site.Node]; {
		case x.Thread.TSO != 0 && x.Flags&eventlog.SampleContext == 0:
			state = Mutator
			n.add(n.thread(threadKey{x.Thread.PID, x.Thread.TSO}), x.Time, x.Weight)
		case flags&profile.GCWaiting != 0:
			state = GCWaiting
		case flags&profile.InGC != 0:
			state = GC
		}
		n.add(&n.cap(capKey{x.Thread.PID, x.Capability})[state], x.Time, x.Weight)
	}
	return n.result(p, to-from-p.Unrecorded(from, to))
}

// counter sums up samples in batches of equal length.
type counter struct {
	from, to, step uint64
	caps           map[capKey]*[Off]interval.Part
	threads        map[threadKey]*interval.Part
}

func (n *counter) cap(k capKey) *[Off]interval.Part {
	c := n.caps[k]
	if c == nil {
		c = &[Off]interval.Part{}
		for i := range c {
			c[i].Reset(interval.Batches)
		}
		n.caps[k] = c
	}
	return c
}

func (n *counter) thread(k threadKey) *interval.Part {
	t := n.threads[k]
	if t == nil {
		t = &interval.Part{}
		t.Reset(interval.Batches)
		n.threads[k] = t
	}
	return t
}

func (n *counter) add(p *interval.Part, time, weight uint64) {
	w := float64(weight)
	p.Samples++
	p.Weight += w
	p.Squares += w * w
	p.Batch[min((time-n.from)/n.step, interval.Batches-1)] += w
}

func (n *counter) result(p *profile.Profile, ns uint64) *Activity {
	a := &Activity{From: n.from, To: n.to, Ns: ns}
	for k, parts := range n.caps {
		c := Capability{PID: k.pid, Cap: k.cap}
		var busy interval.Part
		busy.Reset(interval.Batches)
		for i := range parts {
			busy.Add(&parts[i])
		}
		whole, off := n.whole(p, &busy, ns)
		for i := range parts {
			c.Shares[i] = shareOf(whole, &parts[i])
		}
		c.Shares[Off] = shareOf(whole, off)
		a.Capabilities = append(a.Capabilities, c)
	}
	slices.SortFunc(a.Capabilities, func(x, y Capability) int { return cmp.Or(cmp.Compare(x.PID, y.PID), cmp.Compare(x.Cap, y.Cap)) })
	labels := map[threadKey]string{}
	for i := range p.Threads {
		t := &p.Threads[i]
		if t.Label != "" {
			labels[threadKey{t.PID, t.TSO}] = t.Label
		}
	}
	for k, part := range n.threads {
		whole, _ := n.whole(p, part, ns)
		a.Threads = append(a.Threads, Thread{k.pid, k.tso, labels[k], shareOf(whole, part)})
	}
	slices.SortFunc(a.Threads, func(x, y Thread) int {
		return cmp.Or(cmp.Compare(y.Of, x.Of), cmp.Compare(x.PID, y.PID), cmp.Compare(x.TSO, y.TSO))
	})
	return a
}

// whole returns all of the time as if it had been sampled as densely as the time on a CPU: what is
// not part of that is off. Samples may add up to more than the time, by their own noise.
func (n *counter) whole(p *profile.Profile, busy *interval.Part, ns uint64) (*interval.Whole, *interval.Part) {
	var w interval.Whole
	var off interval.Part
	w.Reset(interval.Batches)
	off.Reset(interval.Batches)
	each := busy.Weight / float64(max(busy.Samples, 1))
	for i, b := range busy.Batch {
		at := n.from + uint64(i)*n.step
		end := max(at, min(at+n.step, n.to))
		length := float64(end - at - p.Unrecorded(at, end))
		off.Batch[i] = max(length-b, 0)
		w.Batch[i] = b + off.Batch[i]
	}
	off.Weight = max(float64(ns)-busy.Weight, 0)
	off.Samples = uint64(off.Weight / max(each, 1))
	off.Squares = off.Weight * each
	w.Samples, w.Weight, w.Squares = busy.Samples+off.Samples, busy.Weight+off.Weight, busy.Squares+off.Squares
	return &w, &off
}

func shareOf(w *interval.Whole, p *interval.Part) Share {
	s := Share{Samples: p.Samples, Interval: w.Share(p)}
	if w.Weight > 0 {
		s.Of = p.Weight / w.Weight
	}
	return s
}
