package columns

import (
	"fmt"

	"ccagent/eventlog"
)

// eventTable collects the sampled events, their rates and losses.
type eventTable struct {
	p     *Log
	index map[uint32]int // EventDef.Index → position in Log.Events
	last  [2]uint32      // cache: 1 + the event index looked up last, and its position
}

func (t *eventTable) eventDef(ev *eventlog.EventDef) {
	if i, ok := t.index[ev.Index]; ok {
		if e := &t.p.Events[i]; e.Undefined {
			e.EventDef, e.Undefined = *ev, false
		} else {
			t.p.Accounting.Redefined++
		}
		return
	}
	t.newEvent(Event{EventDef: *ev})
}

// eventRate records a change of an event's rate. A log that rotation started repeats the
// rates of the logs before it.
func (t *eventTable) eventRate(time uint64, ev *eventlog.EventRate) {
	i, ok := t.event(ev.Event)
	if !ok {
		t.p.Accounting.Dropped++
		return
	}
	e := &t.p.Events[i]
	if n := len(e.Rates); n == maxRates || n > 0 && e.Rates[n-1].EventRate == *ev {
		return
	}
	e.Rates = append(e.Rates, EventRate{time, *ev})
}

func (t *eventTable) newEvent(e Event) (int, bool) {
	i := len(t.p.Events)
	if i == maxEvents {
		return 0, false
	}
	t.index[e.Index] = i
	t.p.Events = append(t.p.Events, e)
	return i, true
}

// event returns the position of the event with an index. It creates an event that the log
// does not define, so that the samples that refer to it are not lost.
func (t *eventTable) event(index uint32) (int, bool) {
	if t.last[0] == index+1 && t.last[0] != 0 {
		return int(t.last[1]), true
	}
	i, ok := t.index[index]
	if ok {
		if t.p.Events[i].Undefined {
			t.p.Accounting.Undefined.Events++
		} else {
			t.last = [2]uint32{index + 1, uint32(i)}
		}
		return i, true
	}
	t.p.Accounting.Undefined.Events++
	name := fmt.Sprintf("event#%d", index)
	return t.newEvent(Event{Undefined: true, EventDef: eventlog.EventDef{Index: index, Requested: name, Granted: name}})
}

func (t *eventTable) loss(time uint64, ev *eventlog.Loss) {
	if ev.Reason == eventlog.LossSideBand { // these losses are not samples
		t.p.Losses = append(t.p.Losses, Loss{time, *ev})
		return
	}
	i, ok := t.event(ev.Event)
	if !ok {
		t.p.Accounting.Dropped++
		return
	}
	e := &t.p.Events[i]
	if ev.Reason == eventlog.LossThrottled {
		e.Throttled = SatAdd(e.Throttled, ev.Count)
	} else {
		e.Lost = SatAdd(e.Lost, ev.Count)
	}
	t.p.Losses = append(t.p.Losses, Loss{time, *ev})
}
