package process

import (
	"testing"

	"ccagent/perf"
)

// The side band reports all processes; those of the table, and what they fork, are followed.
func TestFollows(t *testing.T) {
	ps := &Table{Images: map[uint32]*Image{10: {PID: 10}, 11: {PID: 11, Exited: true}}}
	for _, c := range []struct {
		change perf.Change
		want   bool
	}{
		{&perf.Mmap{PID: 10}, true},
		{&perf.Exec{PID: 10}, true},
		{&perf.Exit{PID: 10, TID: 12}, true},
		{&perf.Fork{PID: 20, Parent: 10}, true},
		{&perf.Mmap{PID: 11}, false}, // its number is another's
		{&perf.Fork{PID: 10, Parent: 99}, false},
		{&perf.Mmap{PID: 20}, false},
		{&perf.Exec{}, false}, // in a namespace that the agent does not see
	} {
		if got := ps.Follows(c.change); got != c.want {
			t.Errorf("%T %+v: %v", c.change, c.change, got)
		}
	}
}
