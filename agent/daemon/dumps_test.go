package daemon

import (
	"strings"
	"testing"
	"time"
)

// A process is not read again before it has gone on for long enough, and few are read at a time.
func TestDumpsAreBounded(t *testing.T) {
	var d dumps
	now := time.Now()
	begin := func(pid uint32, after time.Duration, want string) {
		t.Helper()
		err := d.begin(pid, 0, now.Add(after))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("a dump of process %d after %v: %v, want %q", pid, after, err, want)
		}
	}
	begin(1, 0, "")
	begin(1, 0, "are being read")
	begin(2, 0, "")
	begin(3, 0, "")
	begin(4, 0, "3 processes")
	d.end(3, now.Add(-time.Hour), 0)
	d.end(1, now, restAfter(30*time.Millisecond, 0.01))
	begin(1, time.Second, "ask again in 2s")
	begin(3, time.Second, "")
	d.end(3, now.Add(time.Second), restAfter(0, 0.01))
	begin(3, time.Second, "ask again in 1s")
	begin(1, 3*time.Second, "")
	d.end(1, now.Add(3*time.Second), restAfter(time.Minute, 0)) // no bound
	begin(1, 3*time.Second+leastBetween, "")
	d.end(1, now, leastBetween)
	d.end(2, now, leastBetween)
	begin(9, time.Minute, "")
	if len(d.next) != 0 {
		t.Errorf("what is over is remembered: %v", d.next)
	}
}

// A user other than root has one process read at a time, and all users together leave a place for root.
func TestDumpsAreShared(t *testing.T) {
	var d dumps
	now := time.Now()
	for _, c := range []struct {
		pid, uid uint32
		want     string
	}{
		{1, 1000, ""}, {2, 1000, "for you"}, {1, 1001, "are being read"}, {2, 1001, ""}, {3, 1002, "2 processes"}, {3, 0, ""}, {4, 0, "3 processes"},
	} {
		err := d.begin(c.pid, c.uid, now)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("user %d asks for process %d: %v, want %q", c.uid, c.pid, err, c.want)
		}
	}
	d.end(1, now, 0)
	if err := d.begin(5, 1000, now); err != nil {
		t.Errorf("when a user's dump is done: %v", err)
	}
}
