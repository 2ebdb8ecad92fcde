package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Reason is why a log was not sent.
type Reason string

const (
	Full       Reason = "full"       // the queue was; the oldest goes
	Refused    Reason = "refused"    // by the engine, for good
	Gone       Reason = "gone"       // removed before it was sent
	Unreadable Reason = "unreadable" // no log, or not one that can be sent
	GaveUp     Reason = "gave up"    // Options.GiveUp has passed
)

// Options are a queue's bounds. Zero fields have the defaults stated.
type Options struct {
	Max int // logs that wait; 4096
	// First and Longest bound the time between two attempts: 1 s, 5 min. It doubles.
	First, Longest time.Duration
	// GiveUp is for how long one log is tried; 0 is for ever.
	GiveUp time.Duration
	// Spill is the file that keeps the names of the logs that wait, so that a later Queue goes on
	// with them; none if empty.
	Spill string
	// Read makes the batch of a log.
	Read func(path string) (*Batch, error)
	// Together is how many logs may be sent in one request; 1.
	Together int
	// Request makes the request of the first n of some logs, at least of one, nil if they have nothing to send; an error is why
	// there is none of the first. By default it is made of what Read gives of that.
	Request func(ctx context.Context, paths []string, e Engine) (r *Request, n int, err error)
	// Report is called for every log that is dropped, and when an engine begins to fail and to answer
	// again.
	Report func(text string)
}

// Stats are a queue's figures since it was made.
type Stats struct {
	Sent     uint64 // logs
	Bytes    uint64 // of requests, before compression
	Attempts uint64 // requests
	Rejected uint64 // profiles that the engine did not take of requests that it took
	Dropped  map[Reason]uint64
	Waiting  int
	Failing  string // the last attempt's error; empty if it succeeded
}

// Queue sends logs to one engine, in order.
type Queue struct {
	client *client
	o      Options

	mu      sync.Mutex
	waiting []string
	sending int // so many, the first, are being sent
	alone   int // so many, the first, are to be sent each by itself, since a request of several was refused
	spilled time.Time
	stale   bool // the spill names logs that have been sent since
	stats   Stats
	wake    chan struct{} // has one element if something changed

	spilling sync.Mutex // of the spill's file, without mu: the disk may hang
}

// NewQueue makes a queue with what an earlier one has left in Options.Spill.
func NewQueue(t *Target, o Options) (*Queue, error) {
	c, err := t.client()
	if err != nil {
		return nil, err
	}
	defaults(&o)
	q := &Queue{client: c, o: o, wake: make(chan struct{}, 1), stats: Stats{Dropped: make(map[Reason]uint64)}}
	if o.Spill != "" {
		text, err := os.ReadFile(o.Spill)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, fmt.Errorf("read the logs that wait for %s: %w", t.Engine.Name, err)
		case json.Unmarshal(text, &q.waiting) != nil: // it was cut off: what waits is not known any more
			q.waiting = nil
			q.report("%s is damaged: what waited to be sent is forgotten", o.Spill)
		}
		q.bound()
	}
	return q, nil
}

func defaults(o *Options) {
	if o.Max <= 0 {
		o.Max = 4096
	}
	if o.First <= 0 {
		o.First = time.Second
	}
	if o.Longest <= 0 {
		o.Longest = 5 * time.Minute
	}
	o.Together = max(o.Together, 1)
	if o.Read == nil {
		o.Read = func(path string) (*Batch, error) { return Read(path, wholeLog, Rules{}) }
	}
	if o.Request == nil {
		o.Request = func(_ context.Context, paths []string, e Engine) (*Request, int, error) {
			b, err := o.Read(paths[0])
			if err != nil || len(b.Profiles) == 0 {
				return nil, 1, err
			}
			r, err := e.Request([]*Batch{b})
			return r, 1, err
		}
	}
	if o.Report == nil {
		o.Report = func(string) {}
	}
}

func (q *Queue) report(format string, args ...any) {
	q.o.Report(q.client.Engine.Name + ": " + fmt.Sprintf(format, args...))
}

// Add queues logs. It waits for the spill's disk alone: if the queue is full, the log that waits longest is dropped.
func (q *Queue) Add(paths ...string) {
	q.mu.Lock()
	q.waiting = append(q.waiting, paths...)
	q.bound()
	q.mu.Unlock()
	q.spill()
	q.changed()
}

// bound drops the oldest logs beyond the maximum, but not those that are being sent.
func (q *Queue) bound() {
	for len(q.waiting) > q.o.Max {
		at := min(q.sending, len(q.waiting)-1)
		q.stats.Dropped[Full]++
		q.report("%s dropped: %d logs wait already", q.waiting[at], q.o.Max)
		q.waiting = append(q.waiting[:at], q.waiting[at+1:]...)
	}
}

func (q *Queue) changed() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// spillInterval is how often the spill is written while logs are being sent, which does not take long. Those that it
// names all the same are sent twice if the process is killed.
const spillInterval = 250 * time.Millisecond

// settle writes the spill if it is stale.
func (q *Queue) settle() {
	q.mu.Lock()
	stale := q.stale
	q.mu.Unlock()
	if stale {
		q.spill()
	}
}

// spill writes the names of the logs that wait. A failure costs them if the process ends. The caller does not hold the lock.
func (q *Queue) spill() {
	if q.o.Spill == "" {
		return
	}
	q.spilling.Lock()
	defer q.spilling.Unlock()
	q.mu.Lock()
	q.spilled, q.stale = time.Now(), false
	text, err := json.Marshal(q.waiting)
	q.mu.Unlock()
	if err == nil {
		next := q.o.Spill + ".new"
		if err = os.WriteFile(next, text, 0o600); err == nil {
			err = os.Rename(next, q.o.Spill)
		}
	}
	if err != nil {
		q.report("keep what waits in %s: %v", filepath.Base(q.o.Spill), err)
	}
}

// Stats returns the figures.
func (q *Queue) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.stats
	s.Waiting = len(q.waiting)
	s.Dropped = make(map[Reason]uint64, len(q.stats.Dropped))
	for r, n := range q.stats.Dropped {
		s.Dropped[r] = n
	}
	return s
}

// Run sends what waits and what is added, until ctx ends. What waits then stays in the spill.
func (q *Queue) Run(ctx context.Context) { q.run(ctx, false) }

// Drain sends what waits and returns when nothing does, when a log was given up, because the engine is
// down for the others too, or when ctx has ended.
func (q *Queue) Drain(ctx context.Context) { q.run(ctx, true) }

func (q *Queue) run(ctx context.Context, untilEmpty bool) {
	defer q.settle()
	for ctx.Err() == nil {
		paths := q.begin()
		if len(paths) == 0 {
			if untilEmpty {
				return
			}
			select {
			case <-q.wake:
			case <-ctx.Done():
			}
			continue
		}
		if n, dropped, why := q.some(ctx, paths); ctx.Err() == nil || dropped == "" && why == "" {
			if dropped == Refused && n > 1 {
				q.apart(n) // one of them may be why
				continue
			}
			q.done(paths[:n], dropped, why)
			if untilEmpty && dropped == GaveUp {
				return
			}
		}
	}
}

// begin returns the logs that may be sent next, in one request.
func (q *Queue) begin() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	most := q.o.Together
	if q.alone > 0 {
		most = 1
	}
	q.sending = min(most, len(q.waiting))
	return slices.Clone(q.waiting[:q.sending])
}

// apart has the first logs sent each by itself.
func (q *Queue) apart(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.alone, q.sending = n, 0
}

// done takes the first logs off the queue.
func (q *Queue) done(paths []string, dropped Reason, why string) {
	q.mu.Lock()
	q.waiting, q.sending, q.stale = q.waiting[len(paths):], 0, true
	q.alone = max(0, q.alone-len(paths))
	due := len(q.waiting) == 0 || time.Since(q.spilled) >= spillInterval
	if dropped == "" {
		q.stats.Sent += uint64(len(paths))
	} else {
		q.stats.Dropped[dropped] += uint64(len(paths))
		for _, path := range paths {
			q.report("%s dropped: %s", path, why)
		}
	}
	q.mu.Unlock()
	if due {
		q.spill()
	}
}

// some sends the first n of some logs, however long that takes.
func (q *Queue) some(ctx context.Context, paths []string) (n int, dropped Reason, why string) {
	r, n, err := q.o.Request(ctx, paths, q.client.Engine)
	if err != nil {
		n = 1
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return n, GaveUp, ctx.Err().Error()
	case errors.Is(err, fs.ErrNotExist):
		return n, Gone, "it was removed before it was sent"
	case err != nil:
		return n, Unreadable, err.Error()
	case r == nil:
		return n, "", ""
	}
	wait, begun := q.o.First, time.Now()
	for {
		rejected, text, err := q.client.send(ctx, r)
		q.attempted(r, rejected, err)
		var again *later
		switch {
		case err == nil:
			if rejected > 0 {
				q.report("%s: %d of the profiles were rejected: %s", named(paths[:n]), rejected, beginning([]byte(text)))
			}
			return n, "", ""
		case ctx.Err() != nil:
			return n, GaveUp, ctx.Err().Error()
		case !errors.As(err, &again):
			return n, Refused, err.Error()
		case q.o.GiveUp > 0 && time.Since(begun)+wait > q.o.GiveUp:
			return n, GaveUp, fmt.Sprintf("no success in %v: %v", q.o.GiveUp, err)
		}
		// A jitter keeps the agents of a fleet from coming back all at once.
		pause := time.NewTimer(max(again.after, wait/2+rand.N(wait/2+1)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return n, GaveUp, ctx.Err().Error()
		}
		wait = min(2*wait, q.o.Longest)
	}
}

// named says which logs a request was made of.
func named(paths []string) string {
	if len(paths) == 1 {
		return paths[0]
	}
	return fmt.Sprintf("%s and %d more", paths[0], len(paths)-1)
}

// attempted counts an attempt, and reports when attempts begin to fail and to succeed.
func (q *Queue) attempted(r *Request, rejected int64, err error) {
	if err != nil {
		q.settle() // the next attempt may be long in coming
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stats.Attempts++
	var again *later
	switch {
	case err == nil:
		q.stats.Bytes += uint64(len(r.Body))
		q.stats.Rejected += uint64(max(rejected, 0))
		if q.stats.Failing != "" {
			q.report("answers again")
		}
		q.stats.Failing = ""
	case errors.As(err, &again):
		if q.stats.Failing == "" {
			q.report("%v; trying again", err)
		}
		q.stats.Failing = err.Error()
	default:
		q.stats.Failing = err.Error()
	}
}
