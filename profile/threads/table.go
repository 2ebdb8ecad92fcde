package threads

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/interval"
)

// Use is a thread's part of what an event counts.
type Use struct {
	Share   float64
	Weight  uint64 // in the event's unit
	Samples uint64
	interval.Interval
}

// User is a thread of a capture, with its parts of the CPU time, of the bytes allocated, and of the time that threads waited.
type User struct {
	PID                 uint32
	TSO                 uint64 // 0: what ran on no Haskell thread's behalf, as collections
	Label               string
	CPU, Alloc, Blocked Use
}

// Users are the threads of a capture that were seen, those that used most first.
type Users struct {
	// CPU, Alloc and Blocked are the events that it rests on; empty if the log has none such.
	CPU, Alloc, Blocked string
	Threads             []User
}

// UsersOf sums up samples by thread.
func UsersOf(p *profile.Profile, f profile.Filter) *Users {
	u := &Users{}
	rows := map[Key]*User{}
	event := func(is func(*columns.Event) bool, use func(*User) *Use) string {
		i := slices.IndexFunc(p.Events, func(e columns.Event) bool { return e.Samples > 0 && is(&e) })
		if i < 0 {
			return ""
		}
		sum(p.Select(f.WithEvent(i)), rows, use)
		return p.Events[i].Name()
	}
	cpu := func(r *User) *Use { return &r.CPU }
	if u.CPU = event(func(e *columns.Event) bool { return e.Clock() }, cpu); u.CPU == "" {
		u.CPU = event(func(e *columns.Event) bool { return e.Granted == "cycles" }, cpu)
	}
	u.Alloc = event(func(e *columns.Event) bool { return e.Granted == "alloc" }, func(r *User) *Use { return &r.Alloc })
	u.Blocked = event(func(e *columns.Event) bool { return e.Granted == "blocked" }, func(r *User) *Use { return &r.Blocked })
	for i := range p.Threads {
		t := &p.Threads[i]
		if r := rows[Key{t.PID, t.TSO}]; r != nil && t.Label != "" {
			r.Label = t.Label
		}
	}
	for _, r := range rows {
		u.Threads = append(u.Threads, *r)
	}
	slices.SortFunc(u.Threads, func(a, b User) int {
		return cmp.Or(cmp.Compare(b.CPU.Share, a.CPU.Share), cmp.Compare(b.Alloc.Share, a.Alloc.Share), cmp.Compare(b.Blocked.Share, a.Blocked.Share), cmp.Compare(a.PID, b.PID), cmp.Compare(a.TSO, b.TSO))
	})
	return u
}

// sum adds a selection's samples up by thread.
func sum(s *profile.Selection, rows map[Key]*User, use func(*User) *Use) {
	parts := map[Key]*interval.Part{}
	var whole interval.Whole
	whole.Reset(interval.Batches)
	step := s.Profile.Duration/interval.Batches + 1
	for _, x := range s.EachSample() {
		k := Key{x.Thread.PID, x.Thread.TSO}
		if x.Flags&eventlog.SampleContext != 0 {
			k.TSO = 0
		}
		part := parts[k]
		if part == nil {
			part = &interval.Part{}
			part.Reset(interval.Batches)
			parts[k] = part
		}
		w := float64(x.Weight)
		for _, to := range []*interval.Part{part, &whole.Part} {
			to.Samples++
			to.Weight += w
			to.Squares += w * w
			to.Batch[min(x.Time/step, interval.Batches-1)] += w
		}
	}
	for k, part := range parts {
		r := rows[k]
		if r == nil {
			r = &User{PID: k.PID, TSO: k.TSO}
			rows[k] = r
		}
		if whole.Weight > 0 {
			*use(r) = Use{Share: part.Weight / whole.Weight, Weight: uint64(part.Weight), Samples: part.Samples, Interval: whole.Share(part)}
		}
	}
}
