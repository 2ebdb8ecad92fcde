package columns

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
)

// Watch is a stretch in which all hits of a group of probes were recorded, so that the standard
// events in it are whole.
type Watch struct {
	From, To uint64 // ns
	// Runs and RunNs are the runs that began in it; zero but for threads.
	Runs, RunNs uint64
}

// maxWatches bounds what is kept of one group.
const maxWatches = 1 << 18

// watching collects the watches of one group. Its edges come in order but for the beginnings of
// gaps, which may lie before events that are in the log already.
type watching struct {
	edges []edge
	begun []Watch // by order of beginnings: the runs
}

type edge struct {
	time uint64
	on   bool
	// guess is set of the end of a gap in the log, until an event says that the group was watched
	// there.
	guess bool
}

func (s *rtsState) watch(time uint64, ev *eventlog.RTSWatch) {
	if s.watches == nil {
		s.watches = make(map[string]*watching)
	}
	w := s.watches[ev.Group]
	if w == nil {
		if len(s.watches) == maxProbeGroups {
			return
		}
		w = &watching{}
		s.watches[ev.Group] = w
	}
	n := len(w.edges)
	if n >= maxWatches || n > 0 && w.edges[n-1].on == ev.Watched && !w.edges[n-1].guess {
		return
	}
	if n > 0 && w.edges[n-1].guess {
		w.edges[n-1].guess = ev.Watched // where it begins to be watched it was not before
	}
	if n := len(w.edges); n > 0 {
		time = max(time, w.edges[n-1].time) // hostile logs only
	}
	w.edges = append(w.edges, edge{time: time, on: ev.Watched})
	if ev.Watched {
		w.begun = append(w.begun, Watch{From: time})
	}
}

// gap notes that nothing is known of a stretch of time. What was under way is left out: its end may
// have been lost before the gap, for capabilities' events are written in blocks.
func (s *rtsState) gap(from, to uint64) {
	for cap := range s.running {
		s.running[cap].on = false
	}
	clear(s.collector.gcs)
	for _, w := range s.watches {
		if n := len(w.edges); n > 0 && n < maxWatches && w.edges[n-1].on && w.edges[n-1].time <= from {
			w.edges = append(w.edges, edge{time: from}, edge{time: to, on: true, guess: true})
			w.begun = append(w.begun, Watch{From: to})
		}
	}
}

// seen confirms that a group was watched after a gap: something was seen.
func (w *watching) seen(time uint64) {
	if n := len(w.edges); n > 0 && time >= w.edges[n-1].time {
		w.edges[n-1].guess = false
	}
}

// ranIn adds a run to the watch that it began in.
func (w *watching) ranIn(run *Run) {
	if w == nil {
		return
	}
	w.seen(run.Start)
	i, found := slices.BinarySearchFunc(w.begun, run.Start, func(x Watch, t uint64) int { return cmp.Compare(x.From, t) })
	if !found {
		i--
	}
	if i >= 0 {
		w.begun[i].Runs++
		w.begun[i].RunNs += run.End - run.Start
	}
}

// finishWatches makes stretches of edges.
func (s *rtsState) finishWatches(last uint64) {
	l := &s.p.RTSLog
	for group, w := range s.watches {
		collected := uint64(0)
		if gcs := s.p.GCs; group == "gc" && len(gcs) > 0 {
			collected = gcs[len(gcs)-1].Start
		}
		out := make([]Watch, 0, len(w.begun))
		begun := 0
		for i, e := range w.edges {
			if !e.on {
				continue
			}
			x := w.begun[begun]
			begun++
			if e.guess && collected < e.time {
				continue
			}
			x.To = max(last, x.From)
			if i+1 < len(w.edges) {
				x.To = w.edges[i+1].time
			}
			if x.To > x.From {
				out = append(out, x)
			}
		}
		if l.Watches == nil {
			l.Watches = make(map[string][]Watch)
		}
		l.Watches[group] = out
	}
}

// Watched returns how long a group's probes ("gc" or "threads") saw all that happened, in ns, and
// whether that was less than the log's time. Their counts cover that time only.
func (l *Log) Watched(group string) (ns uint64, partly bool) {
	if ws, known := l.RTSLog.Watches[group]; known {
		for _, w := range ws {
			ns += min(w.To, l.Duration) - min(w.From, l.Duration)
		}
		return ns, l.Duration-ns > max(l.Duration/500, shortGap)
	}
	for _, g := range l.RTSLog.Probes {
		if g.Group == group && g.OutNs > 0 {
			return l.Duration - min(g.OutNs, l.Duration), true
		}
	}
	return l.Duration, false
}

// Tells reports whether the log says anything of a group's events ("gc" or "threads"): only then is
// a count of 0 a count.
func (l *Log) Tells(group string) bool {
	r := &l.RTSLog
	if _, watched := r.Watches[group]; watched {
		return true
	}
	for _, g := range r.Probes {
		if g.Group == group && g.Problem == "" {
			return true
		}
	}
	runs, _ := r.Ran()
	switch group {
	case "gc":
		return len(l.GCs) > 0 || r.Stats.Collections > 0
	case "threads":
		return runs > 0 || r.Created > 0
	}
	return false
}

// shortGap is the time in ns in which a program starts or ends that need not be mentioned.
const shortGap = 5e6

// Running returns how long threads may have run, in ns: from the first run on; and the part of
// it in which runs were watched.
func (l *Log) Running() (all, watched uint64) {
	first := min(l.RTSLog.FirstRun, l.Duration)
	watched, partly := l.Watched("threads")
	if ws := l.RTSLog.Watches["threads"]; partly && len(ws) > 0 {
		watched -= min(ws[0].To, first) - min(ws[0].From, first)
	} else {
		watched -= min(watched, first)
	}
	return l.Duration - first, watched
}
