package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

// growingLog is a log of which only a part is available yet.
type growingLog struct {
	log       []byte
	pos, have int
}

func (g *growingLog) Read(p []byte) (int, error) {
	n := copy(p, g.log[g.pos:g.have])
	g.pos += n
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// shownRecord is a record as text, to compare.
func shownRecord(r *Reader) string {
	rec := r.Record()
	return fmt.Sprintf("%d %d %d %T %+v", rec.Offset, rec.Time, rec.Cap, rec.Event, rec.Event)
}

// sameGrowing reads a log as it grows by the steps that step gives, and holds
// the records against those of the whole log.
func sameGrowing(t *testing.T, log []byte, step func() int) {
	t.Helper()
	whole := NewReader(bytes.NewReader(log))
	var he *HeaderError
	if first := whole.Next(); errors.As(whole.Err(), &he) {
		return // whoever follows a log waits for its header
	} else if !first {
		return
	}
	g := &growingLog{log: log, have: int(whole.judge.begin)}
	r := NewReader(g)
	r.SetGrowing(true)
	more := true
	check := func() {
		if !more {
			t.Fatalf("of the growing log there is %s, the whole one has ended", shownRecord(r))
		}
		if got, want := shownRecord(r), shownRecord(whole); got != want {
			t.Fatalf("with %d of %d bytes there\n%s\nof the whole log\n%s", g.have, len(log), got, want)
		}
		more = whole.Next()
	}
	for g.have < len(log) {
		for r.Next() {
			check()
		}
		if r.Complete() {
			return // what follows an end marker was not there
		}
		g.have = min(len(log), g.have+step())
	}
	if step()%2 == 0 { // else the last piece comes with the news that it is the last
		for r.Next() {
			check()
		}
	}
	r.SetGrowing(false)
	for r.Next() {
		check()
	}
	if more || r.Complete() != whole.Complete() || r.Offset() != whole.Offset() {
		t.Fatalf("the growing log ends at %d (complete %t), the whole one goes on with %s", r.Offset(), r.Complete(), shownRecord(whole))
	}
}

// A log read while it grows gives the same records as the finished log, whatever parts it
// arrives in, also if it is damaged.
func TestGrowing(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for name, log := range damageInputs(t) {
		t.Run(name, func(t *testing.T) {
			log := log[:min(len(log), 60_000)]
			sameGrowing(t, log, func() int { return 1 + rng.IntN(40) })
			start := headerLen(t, log)
			for range 40 {
				bad := bytes.Clone(log)
				for range 1 + rng.IntN(3) {
					bad[start+rng.IntN(len(bad)-start)] ^= byte(1 + rng.IntN(255))
				}
				if rng.IntN(2) == 0 {
					at := start + rng.IntN(len(bad)-start)
					bad = append(bad[:at:at], bad[min(len(bad), at+rng.IntN(200)):]...)
				}
				sameGrowing(t, bad, func() int { return 1 + rng.IntN(5000) })
			}
		})
	}
}

// Each event of a growing log is returned as soon as it is whole, not before.
func TestGrowingGivesWhatIsThere(t *testing.T) {
	log := mixedLog(t, 2)
	events, _, _, err := readAll(log)
	if err != nil {
		t.Fatal(err)
	}
	g := &growingLog{log: log}
	g.have = headerLen(t, log)
	r := NewReader(g)
	r.SetGrowing(true)
	for _, e := range events {
		g.have = e.end() - 1
		if r.Next() {
			t.Fatalf("with all but a byte of it there, %s", shownRecord(r))
		}
		g.have++
		if !r.Next() || r.Record().Offset != e.offset {
			t.Fatalf("no event at %d once it is there", e.offset)
		}
	}
}

// NextSamples reads the same samples as Next, also where the log is damaged.
func TestFastSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	logs := damageInputs(t)
	logs["steady"] = steadyLog(t, 3000)
	for name, log := range logs {
		t.Run(name, func(t *testing.T) {
			sameFast(t, log)
			start := headerLen(t, log)
			for range 30 {
				bad := bytes.Clone(log)
				for range 1 + rng.IntN(4) {
					bad[start+rng.IntN(len(bad)-start)] ^= byte(1 + rng.IntN(255))
				}
				sameFast(t, bad)
			}
		})
	}
}
