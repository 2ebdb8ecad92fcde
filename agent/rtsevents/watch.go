package rtsevents

import (
	"slices"

	"ccagent/bpf"
	"ccagent/eventlog"
)

// Groups are the names of the groups of probes, which are those of events too.
var Groups = [bpf.RTSGroups]string{
	bpf.RTSGroupGC:      "gc",      // collections and the heap's size
	bpf.RTSGroupThreads: "threads", // threads run and stop, with the reason
}

// what says what a group watches, in markers for readers that do not know our events.
var what = [bpf.RTSGroups]string{bpf.RTSGroupGC: "collections", bpf.RTSGroupThreads: "threads"}

// GroupOf returns the group of a probe.
func GroupOf(probe bpf.RTSProbe) int {
	if probe >= bpf.RTSRun && probe != bpf.RTSSparks {
		return int(bpf.RTSGroupThreads)
	}
	return int(bpf.RTSGroupGC)
}

// watch is where a group is watched.
type watch struct {
	said bool   // the log says whether it is
	gap  bool   // it is not: records are left out
	from uint64 // when it began to be, ns
	cpus []lastRecord
}

// lastRecord is a CPU's last record of a group, or when the watch began.
type lastRecord struct {
	time    uint64 // ns; 0 = none
	dropped uint64 // records before it
}

// maxCPUs is more than any machine has.
const maxCPUs = 1 << 14

func (w *watch) cpu(n int) *lastRecord {
	n = min(n, maxCPUs)
	for len(w.cpus) <= n {
		w.cpus = append(w.cpus, lastRecord{})
	}
	return &w.cpus[n]
}

// since returns up to when a CPU's records are known to be whole.
func (w *watch) since(cpu int) uint64 { return max(w.from, w.cpu(cpu).time) }

// Gap is where a gap of a group begins or ends: its probes are about to be removed, or are all in
// place. Dropped counts the records that each CPU has dropped until then.
type Gap struct {
	Time    uint64 // ns
	Group   int
	Begins  bool
	Dropped []uint64
}

// Gap takes the beginning or the end of a gap. Where records were dropped since a CPU's last one,
// the gap begins there. What is under way ends with the beginning, and is said not to be watched,
// in an event of ours and in a marker for other readers.
func (t *Translator) Gap(g Gap) error {
	w := &t.watches[g.Group]
	for n, dropped := range g.Dropped {
		if c := w.cpu(n); dropped > c.dropped {
			if g.Begins {
				g.Time = min(g.Time, w.since(n))
			}
			c.dropped = dropped
		}
	}
	return t.watch(g, true)
}

// dropped notes a record's count of those dropped before it. If there were some since the CPU's
// record before, what was between the two was not watched.
func (t *Translator) dropped(r Record, g int) error {
	w := &t.watches[g]
	c := w.cpu(int(min(r.CPU, maxCPUs)))
	before, since := c.dropped, w.since(int(min(r.CPU, maxCPUs)))
	c.time, c.dropped = r.Time, max(before, r.Dropped)
	if r.Dropped <= before || w.gap {
		return nil
	}
	if err := t.watch(Gap{Time: min(since, r.Time), Group: g, Begins: true}, true); err != nil {
		return err
	}
	return t.watch(Gap{Time: r.Time, Group: g}, true)
}

// watch writes that a group is watched from now on, or not.
func (t *Translator) watch(g Gap, marked bool) error {
	w := &t.watches[g.Group]
	if w.said && w.gap == g.Begins {
		return nil
	}
	first := !w.said
	w.said, w.gap = true, g.Begins
	if g.Begins {
		if err := t.end(g.Time, g.Group); err != nil {
			return err
		}
	} else {
		w.from = g.Time
	}
	if err := t.Write(g.Time, eventlog.NoCap, &eventlog.RTSWatch{Group: Groups[g.Group], Watched: !g.Begins}); err != nil || !marked || first && !g.Begins {
		return err
	}
	text := " are watched from here on"
	if g.Begins {
		text = " are not watched from here on"
	}
	return t.Write(g.Time, eventlog.NoCap, &eventlog.UserMarker{Text: eventlog.OwnMarker + what[g.Group] + text})
}

// declareWatches repeats in a new log what is watched.
func (t *Translator) declareWatches(time uint64) error {
	for g := range t.watches {
		if w := &t.watches[g]; w.said {
			if err := t.Write(time, eventlog.NoCap, &eventlog.RTSWatch{Group: Groups[g], Watched: !w.gap}); err != nil {
				return err
			}
		}
	}
	return nil
}

// end ends what is under way in a group.
func (t *Translator) end(time uint64, group int) error {
	if group == int(bpf.RTSGroupGC) {
		return t.endCollections()
	}
	for n, c := range t.caps {
		if c == nil {
			continue
		}
		if err := t.stop(time, n, eventlog.StoppedYielding); err != nil {
			return err
		}
	}
	return nil
}

// Close ends collections and runs that are under way, when the capture or process has ended. The
// groups that have been watched are not any more.
func (t *Translator) Close(time uint64) error {
	for g := range t.watches {
		if err := t.end(time, g); err != nil {
			return err
		}
		if !t.watches[g].said {
			continue
		}
		if err := t.watch(Gap{Time: time, Group: g, Begins: true}, false); err != nil {
			return err
		}
		t.watches[g].cpus = slices.Delete(t.watches[g].cpus, 0, len(t.watches[g].cpus))
	}
	return nil
}
