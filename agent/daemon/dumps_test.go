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
		err := d.begin(pid, now.Add(after))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("a dump of process %d after %v: %v, want %q", pid, after, err, want)
		}
	}
	begin(1, 0, "")
	begin(1, 0, "are being read")
	begin(2, 0, "")
	begin(3, 0, "2 processes")
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
