package columns

import "ccagent/eventlog"

// sampleTable makes columns of samples, or only their sums.
type sampleTable struct {
	p        *Log
	threads  map[ThreadKey]uint32
	contexts contextTable
	origins  *[eventlog.MaxOrigins]knownOrigin // by number; nil before the first sample
	chunk    *Chunk
	sums     eventSums         // used instead of chunks, if not nil
	labels   map[uint64]string // of Haskell threads, by TSO
	names    map[thread]string
}

func newSampleTable() sampleTable {
	return sampleTable{
		threads: make(map[ThreadKey]uint32), contexts: newContextTable(), labels: make(map[uint64]string), names: make(map[thread]string),
	}
}

// column adds a sample to the columns.
func (t *sampleTable) column(s *eventlog.PackedSample, site, context uint32) {
	if t.chunk == nil || t.chunk.N == ChunkSize {
		t.chunk = new(Chunk)
		t.p.Chunks = append(t.p.Chunks, t.chunk)
	}
	c, i := t.chunk, t.chunk.N
	c.Time[i], c.Site[i], c.Context[i] = s.Time, site, context
	c.setWeight(i, s.Weight)
	c.N++
}

// knownOrigin is an origin with the latest context of its samples, so that most samples need no other
// look-up.
type knownOrigin struct {
	eventlog.Origin
	flags   eventlog.SampleFlags
	context uint32 // 1 + its index; 0 if there is none
}

// contextOf returns the context of a sample.
func (t *sampleTable) contextOf(s *eventlog.PackedSample, o *knownOrigin, events *eventTable) (uint32, bool) {
	if o.context != 0 && o.flags == s.Flags {
		return o.context - 1, true
	}
	context, ok := t.context(contextKey{o.Origin, s.Flags}, events)
	if ok && !t.p.Events[t.contexts.list[context].Event].Undefined {
		o.context, o.flags = context+1, s.Flags
	}
	return context, ok
}

// context returns the context of a key.
func (st *sampleTable) context(k contextKey, events *eventTable) (uint32, bool) {
	t := &st.contexts
	slot := &t.recent[k.hash()%uint64(len(t.recent))]
	if slot.id != 0 && slot.key == k {
		return slot.id - 1, true
	}
	event, ok := events.event(k.Event)
	if !ok {
		return 0, false
	}
	id, known := t.index[k]
	if !known {
		id = uint32(len(t.list))
		t.list = append(t.list, Context{
			Thread: st.thread(ThreadKey{k.PID, k.TID, k.TSO}), CPU: uint16(min(k.CPU, 0xffff)),
			Cap: capability(k.Capability), Flags: k.flags, Event: uint8(event),
		})
		t.index[k] = id
	}
	if !st.p.Events[event].Undefined {
		*slot = recentContext{k, id + 1}
	}
	return id, true
}

// capability returns a sample's capability, or none if no log can have so many.
func capability(n uint32) uint16 {
	if n >= eventlog.MaxCapabilities {
		return eventlog.NoCapability
	}
	return uint16(n)
}

// thread identifies a Haskell thread among those of several processes.
type thread struct {
	pid uint32
	tso uint64
}

// thread returns the index of a thread.
func (t *sampleTable) thread(key ThreadKey) uint32 {
	p := t.p
	i, ok := t.threads[key]
	if !ok {
		i = uint32(len(p.Threads))
		t.threads[key] = i
		p.Threads = append(p.Threads, Thread{ThreadKey: key})
	}
	return i
}

// finish completes the columns.
func (t *sampleTable) finish(sites int) {
	p := t.p
	if t.sums != nil {
		p.Totals = t.sums.totals(p.Events, sites)
	}
	p.Contexts = t.contexts.list
	for i := range p.Threads {
		th := &p.Threads[i]
		if name, ok := t.names[thread{th.PID, th.TSO}]; ok {
			th.Label = name
		} else {
			th.Label = t.labels[th.TSO]
		}
	}
}
