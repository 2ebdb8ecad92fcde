package columns

import "ccagent/eventlog"

// gcState is what a capability does for a collection.
type gcState struct {
	request uint64 // 0 = none since its last collection
	start   uint64
	on      bool   // it has begun
	since   uint64 // when it began or went on to work
	works   bool
	worked  uint64
	split   bool // the log says when it works
}

// collectorState collects the garbage collections of an RTS.
type collectorState struct {
	sparks    map[int]eventlog.SparkCounters // by capability, as last reported
	gcs       map[int]*gcState               // what is under way, by capability
	allocated map[int]uint64                 // bytes, by capability
	gens      uint16
	byGen     [maxGenerations]uint64 // number of collections by generation
}

// collection adds an event of a capability's part in a collection.
func (c *collectorState) collection(p *Log, rec *eventlog.Record) {
	s := c.gcs[rec.Cap]
	if s == nil {
		s = &gcState{}
		c.gcs[rec.Cap] = s
	}
	switch rec.Event.(type) {
	case *eventlog.RequestSeqGC, *eventlog.RequestParGC:
		s.request = rec.Time
	case *eventlog.GCStart:
		*s = gcState{request: s.request, start: rec.Time, on: true}
	case *eventlog.GCWork:
		s.rest(rec.Time)
		s.since, s.works, s.split = rec.Time, true, true
	case *eventlog.GCIdle, *eventlog.GCDone:
		s.rest(rec.Time)
	case *eventlog.GCEnd:
		if !s.on || s.start > rec.Time {
			return
		}
		s.rest(rec.Time)
		g := GC{Cap: rec.Cap, Start: s.start, End: rec.Time, Worked: min(s.worked, rec.Time-s.start)}
		if !s.split {
			g.Worked = g.End - g.Start
		}
		if s.request <= s.start {
			g.Request = s.request
		}
		p.GCs = append(p.GCs, g)
		*s = gcState{}
	}
}

// rest ends a stretch of work.
func (s *gcState) rest(time uint64) {
	if s.works && time > s.since {
		s.worked += time - s.since
	}
	s.works = false
}
