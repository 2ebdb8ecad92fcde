package columns

import "ccagent/eventlog"

// sampleTable makes columns of samples, or only their sums.
type sampleTable struct {
	p        *Log
	threads  map[ThreadKey]uint32
	contexts contextTable
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
func (t *sampleTable) column(s *eventlog.TimedSample, site, context uint32) {
	if t.chunk == nil || t.chunk.N == ChunkSize {
		t.chunk = new(Chunk)
		t.p.Chunks = append(t.p.Chunks, t.chunk)
	}
	c, i := t.chunk, t.chunk.N
	c.Time[i], c.Site[i], c.Context[i] = s.Time, site, context
	c.setWeight(i, s.Weight)
	c.N++
}

// contextOf returns the context of a sample. Its number is at a position of keys, if keys is not
// nil.
func (t *sampleTable) contextOf(s *eventlog.Sample, keys []uint32, at int, events *eventTable) (uint32, bool) {
	if keys == nil {
		return t.context(s, events)
	}
	context, ok := t.contexts.ofKey(keys[at])
	if !ok {
		if context, ok = t.context(s, events); ok && !t.p.Events[t.contexts.list[context].Event].Undefined {
			t.contexts.setKey(keys[at], context)
		}
	}
	return context, ok
}

// context returns a sample's context.
func (st *sampleTable) context(ev *eventlog.Sample, events *eventTable) (uint32, bool) {
	k := keyOf(ev)
	t := &st.contexts
	slot := &t.recent[k.hash()%uint64(len(t.recent))]
	if slot.id != 0 && slot.key == k {
		return slot.id - 1, true
	}
	event, ok := events.event(ev.Event)
	if !ok {
		return 0, false
	}
	id, known := t.index[k]
	if !known {
		id = uint32(len(t.list))
		t.list = append(t.list, Context{
			Thread: st.thread(ThreadKey{ev.PID, ev.TID, ev.TSO}), CPU: uint16(min(ev.CPU, 0xffff)),
			Cap: capability(ev.Capability), Flags: ev.Flags, Event: uint8(event),
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

// contextKeys numbers contexts in the reader's goroutine, which has more time to compare
// keys than the builder's.
type contextKeys struct {
	index  map[contextKey]uint32
	recent *[1 << 10]recentContext
}

func newContextKeys() *contextKeys {
	return &contextKeys{index: make(map[contextKey]uint32), recent: new([1 << 10]recentContext)}
}

func (t *contextKeys) number(s *eventlog.Sample) uint32 {
	k := keyOf(s)
	slot := &t.recent[k.hash()%uint64(len(t.recent))]
	if slot.id != 0 && slot.key == k {
		return slot.id - 1
	}
	id, ok := t.index[k]
	if !ok {
		id = uint32(len(t.index))
		t.index[k] = id
	}
	*slot = recentContext{k, id + 1}
	return id
}
