package cpu

import (
	"ccagent/agent/overhead"
	"ccagent/perf"
)

// rates are those that are chosen from where none is asked for, in Hz. Their periods have no
// small multiple in common with a millisecond: a program that wakes by a timer is sampled in
// all of what it does, not again and again at the same point.
var rates = []uint64{997, 487, 241, 113, 47, 23, 11, 5}

// leastAuto is the lowest rate that is chosen before it is known what samples cost.
const leastAuto = 241

// walkNs is what a sample's walk is taken to cost beside its interrupt before any was taken.
const walkNs = 5000

// autoRate chooses a rate by what an interrupt costs, in ns: the highest whose samples would
// take no more than the events' part of what is allowed from a thread that runs all the time;
// the highest of all where nothing is limited.
func autoRate(interrupt, asked float64, limit uint64) uint64 {
	for _, hz := range rates {
		if limit != 0 && hz > limit {
			continue
		}
		if asked <= 0 || float64(hz)*(interrupt+walkNs) <= asked*overhead.EventsPart*1e9 || hz <= leastAuto {
			return hz
		}
	}
	return limit
}

// lowered is the chosen rate of which part is taken.
func lowered(chosen uint64, part float64) uint64 {
	for _, hz := range rates {
		if float64(hz) <= float64(chosen)*part*1.02 {
			return hz
		}
	}
	return rates[len(rates)-1]
}

// commensurate reports whether a period has a small multiple in common with a millisecond.
func commensurate(r perf.Rate) bool {
	const (
		small    = 10 // ms
		drift    = 0.02
		nearness = 1e6 // ns
	)
	period := float64(r.Period)
	if r.Frequency != 0 {
		period = 1e9 / float64(r.Frequency)
	}
	if period < 1e3 {
		return false // every phase is hit
	}
	for n := 1.0; n*period <= small*nearness; n++ {
		ms := n * period / nearness
		if off := ms - float64(int(ms+0.5)); ms >= 0.5 && max(off, -off) < drift/10 {
			return true
		}
	}
	return false
}
