package series

import (
	"fmt"
	"strings"
	"time"

	"ccagent/agent/process"
	"ccagent/agent/source"
	"ccagent/perf"
)

// name is the event's; a period may follow it.
const name = "heap"

// defaultPeriod is the time between censuses where none is given. A pause of 5 ms in each second is half
// a per cent of a CPU's time; what a leak takes to show is longer.
const defaultPeriod = time.Second

// Kind makes the source of censuses of the heap.
func Kind() source.Kind { return source.Kind{Grant: grant, New: open, Known: known, Once: true} }

func grant(asked string, _ perf.Rate) (*source.Event, bool, error) {
	period := defaultPeriod
	event, text, given := strings.Cut(asked, "=")
	if event != name {
		return nil, false, nil
	}
	if given {
		var err error
		if period, err = time.ParseDuration(text); err != nil || period <= 0 {
			return nil, true, fmt.Errorf("event %s: %q is no time between censuses; give one like %s=1s or %s=250ms", asked, text, name, name)
		}
	}
	return &source.Event{Detail: period}, true, nil
}

func known() []source.Known {
	k := source.Known{Name: name, Unit: "bytes", About: "what is live; heap=PERIOD: how often"}
	k.Reason, k.Help = process.WhyNoProbes()
	return []source.Known{k}
}
