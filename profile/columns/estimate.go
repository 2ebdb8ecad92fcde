package columns

import "math"

// Estimate is an estimated value with its 95 % interval. High is 0 where too little is known for
// one.
type Estimate struct{ Value, Low, High float64 }

// EstimatedRuns returns how many runs of threads there were, by those that began where they were
// watched. Probes are taken out after a number of hits, so a watch is short where threads run often:
// runs divided by time, summed over watches, would hardly count those. Each watch's own rate holds for
// the time about it, up to the middle between it and its neighbours, and the spread of the rates gives
// the interval.
func (l *Log) EstimatedRuns() Estimate {
	from, to := min(l.RTSLog.FirstRun, l.Duration), l.Duration
	var ws []Watch
	seen := 0.0
	for _, w := range l.RTSLog.Watches["threads"] {
		w.From = max(w.From, from)
		if w.From < w.To {
			ws, seen = append(ws, w), seen+float64(w.Runs)
		}
	}
	var sum, squares float64 // of the times that watches stand for
	rates, spans := make([]float64, len(ws)), make([]float64, len(ws))
	var e Estimate
	for i, w := range ws {
		end := to
		if i+1 < len(ws) {
			end = w.To + (ws[i+1].From-w.To)/2
		}
		rates[i], spans[i] = float64(w.Runs)/float64(w.To-w.From), float64(end-min(from, end))
		from = end
		e.Value += rates[i] * spans[i]
		sum, squares = sum+spans[i], squares+spans[i]*spans[i]
	}
	if len(ws) < minWatches || sum == 0 {
		return e
	}
	mean, spread := e.Value/sum, 0.0
	for i := range rates {
		spread += spans[i] / sum * (rates[i] - mean) * (rates[i] - mean)
	}
	n := sum * sum / squares // watches that stand for equally long
	if n < 2 {
		return e
	}
	half := student(int(n)-1) * math.Sqrt(spread/(n-1)) * sum
	// What was seen is certain.
	e.Low, e.High = max(e.Value-half, seen), max(e.Value+half, seen)
	return e
}

// minWatches is the number of watches from which their spread is an estimate.
const minWatches = 4

// student returns the 97.5 % point of Student's t for a number of degrees of freedom, from its
// expansion in powers of their inverse; its error is below 2 % from 3 on.
func student(n int) float64 {
	const z = 1.959964
	v := float64(n)
	return z + (z*z*z+z)/(4*v) + (5*z*z*z*z*z+16*z*z*z+3*z)/(96*v*v) + (3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*z*z*z-15*z)/(384*v*v*v)
}
