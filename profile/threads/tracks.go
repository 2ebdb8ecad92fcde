package threads

import (
	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// Tracks are when each Haskell thread had samples: by thread, the weight in each of equal columns.
type Tracks struct {
	From, To, Step uint64 // ns; the last column may extend beyond To
	Of             map[Key]*Track
	// Lost is the number of samples that were lost in each column, and Samples of those taken: of a column with lost samples
	// and none taken nobody knows who ran.
	Lost, Samples []uint64
}

// Key names a Haskell thread of a capture. TSO is 0 of what ran on no thread's behalf.
type Key struct {
	PID uint32
	TSO uint64
}

// Track is a thread's weight by column.
type Track struct {
	Weight      []uint64
	First, Last uint64 // times of its samples
}

// TracksOf computes tracks of a selection's event in a window, which replaces the selection's range.
func TracksOf(s *profile.Selection, window profile.Range, n int) *Tracks {
	p := s.Profile
	t := &Tracks{From: window.From, To: window.To, Of: map[Key]*Track{}}
	if t.To == 0 || t.To > p.Duration {
		t.To = p.Duration + 1
	}
	t.From = min(t.From, t.To)
	n = max(1, min(n, 1<<12))
	t.Step = max(1, (t.To-t.From+uint64(n)-1)/uint64(n))
	t.Lost, t.Samples = make([]uint64, n), make([]uint64, n)
	column := func(at uint64) int { return min(int((at-t.From)/t.Step), n-1) }
	f := s.Filter
	f.Range = profile.Range{From: t.From, To: max(t.To, 1)}
	for _, x := range p.Select(f).EachSample() {
		k := Key{x.Thread.PID, x.Thread.TSO}
		if x.Flags&eventlog.SampleContext != 0 {
			k.TSO = 0 // the thread waits, as in a safe foreign call
		}
		tr := t.Of[k]
		if tr == nil {
			tr = &Track{Weight: make([]uint64, n), First: x.Time}
			t.Of[k] = tr
		}
		i := column(x.Time)
		tr.Weight[i] = columns.SatAdd(tr.Weight[i], x.Weight)
		tr.First, tr.Last = min(tr.First, x.Time), max(tr.Last, x.Time)
		t.Samples[i]++
	}
	for i := range p.Losses {
		l := &p.Losses[i]
		if s.Event >= 0 && l.Event == p.Events[s.Event].Index && l.Reason != eventlog.LossSideBand && l.Time >= t.From && l.Time < t.To {
			t.Lost[column(l.Time)] += l.Count
		}
	}
	return t
}

// Unknown reports whether nobody knows who ran in a column.
func (t *Tracks) Unknown(col int) bool { return t.Samples[col] == 0 && t.Lost[col] > 0 }
