package agent

import (
	"testing"
	"time"

	"ccagent/agent/engine"
	"ccagent/agent/source"
	"ccagent/eventlog"
)

// A capture of a given duration waits for nothing beyond it, and then ends before anything
// that may take long, such as sampling at another rate.
func TestDurationEndsTheCapture(t *testing.T) {
	c := &capture{engine: &engine.Engine{Sources: &source.Set{}}, opts: Options{Duration: time.Hour}}
	const left = time.Millisecond
	c.begun = time.Now().Add(left - c.opts.Duration)
	if wait := c.pace(); wait > left {
		t.Errorf("it waits for %v where %v are left", wait, left)
	}
	c.begun = time.Now()
	if reason, over := c.over(false); over {
		t.Errorf("it ends too early, as %v", reason)
	}
	c.begun = time.Now().Add(-c.opts.Duration)
	if wait := c.pace(); wait > 0 {
		t.Errorf("it waits for %v at its end", wait)
	}
	if reason, over := c.over(false); !over || reason != eventlog.EndDuration {
		t.Errorf("it goes on: %v, %v", over, reason)
	}
	stop := make(chan struct{})
	close(stop)
	c.stop = stop
	if reason, over := c.over(true); !over || reason != eventlog.EndInterrupted {
		t.Errorf("it is not interrupted: %v, %v", over, reason)
	}
}
