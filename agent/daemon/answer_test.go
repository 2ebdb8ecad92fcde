package daemon

import (
	"errors"
	"testing"
	"time"

	"ccagent/agent/source"
)

// Of a process that has just begun it is not said that it has no run-time system; another reason is said at once.
func TestMissingOfWhatHasJustBegun(t *testing.T) {
	began := time.Now()
	p, other := &proc{taken: began}, errors.New("another reason")
	for _, c := range []struct {
		err  error
		at   time.Duration
		want error
	}{{source.ErrNoRTS, time.Second, errNotYet}, {source.ErrNoRTS, settling, source.ErrNoRTS}, {other, time.Second, other}, {nil, time.Second, nil}} {
		if got := p.missing(c.err, began.Add(c.at)); got != c.want {
			t.Errorf("after %v: %v, want %v", c.at, got, c.want)
		}
	}
}
