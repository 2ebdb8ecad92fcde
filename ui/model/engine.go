package model

import (
	"sync"

	"ccagent/profile"
	"ccagent/profile/reasons"
)

// Engine answers queries on one profile. Compute is for one goroutine at a time.
type Engine struct {
	p      *profile.Profile
	mu     sync.Mutex
	caches map[any]any // by cacheID
}

// NewEngine gives an engine on a profile.
func NewEngine(p *profile.Profile) *Engine { return &Engine{p: p, caches: make(map[any]any)} }

// Profile is what the engine is on.
func (e *Engine) Profile() *profile.Profile { return e.p }

// Compute answers a query.
func (e *Engine) Compute(q Query) *Data {
	d := &Data{Query: q}
	in := &Input{Engine: e, Query: q, Samples: q.Samples}
	sel, err := e.Select(in.Samples)
	if err != nil {
		d.Problem = err.Error()
		in.Samples.Transforms = Transforms{}
		sel, _ = e.Select(in.Samples)
	}
	in.Selection = sel
	d.Summary = Recall(e, in.Samples, func() *Summary { return e.summarise(sel) })
	// The parts that look at all samples or stacks are computed side by side.
	var parts sync.WaitGroup
	if q.Window.Cols > 0 && q.Window.To > q.Window.From {
		parts.Go(func() {
			d.Lanes = Recall(e, timelineKey{in.Samples, q.Selected, q.Window}, func() *Lanes { return e.activity(q) })
		})
	}
	if q.File != 0 && int(q.File) < e.p.Files() {
		parts.Go(func() { d.Source = in.Source() })
	}
	problem := ""
	if q.Part != nil {
		parts.Go(func() {
			var err error
			if d.Part, err = q.Part.Compute(in); err != nil {
				problem = err.Error()
			}
		})
	}
	d.Hot = Recall(e, in.Samples, func() *Hot { return hot(sel) })
	d.Sentence = Recall(e, in.Samples, func() *reasons.Sentence {
		s := reasons.SentenceOf(sel)
		return &s
	})
	if q.Selected != NoKey {
		d.Reason = Recall(e, selectedKey{in.Samples, q.Selected}, func() *reasons.Reason { return d.Hot.reason(sel, q.Selected) })
		d.Overlap = Recall(e, selectedKey{in.Samples, q.Selected}, func() map[Key]float64 { return overlap(sel, q.Selected) })
	}
	parts.Wait()
	if problem != "" {
		d.Problem = problem
	}
	return d
}

type (
	selectedKey struct {
		Samples
		Selected Key
	}
	timelineKey struct {
		Samples
		Selected Key
		Window   Window
	}
)

// Select gives the samples that pass all transforms.
func (e *Engine) Select(s Samples) (*profile.Selection, error) {
	f, err := Filter(s.Event, s.Transforms.All())
	if err != nil {
		return nil, err
	}
	return Recall(e, s, func() *profile.Selection { return e.p.Select(f) }), nil
}

// Recall gives what compute gave for the same key, if that is among the latest of its
// kind: a kind is a pair of types, of keys and of values. Two kinds are computed side by
// side, and two values of one kind one after the other.
func Recall[K comparable, V any](e *Engine, key K, compute func() V) V {
	e.mu.Lock()
	c, ok := e.caches[cacheID[K, V]{}].(*cache[K, V])
	if !ok {
		c = &cache[K, V]{}
		e.caches[cacheID[K, V]{}] = c
	}
	e.mu.Unlock()
	return c.get(key, compute)
}

type cacheID[K comparable, V any] struct{}

// cache keeps the latest values by key. It is small: a key is a whole screen's
// part, and what users come back to is what they saw last.
type cache[K comparable, V any] struct {
	mu     sync.Mutex
	latest []entry[K, V] // the last used at the end
}

type entry[K comparable, V any] struct {
	key K
	val V
}

const cacheSize = 8

func (c *cache[K, V]) get(key K, compute func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, e := range c.latest {
		if e.key == key {
			copy(c.latest[i:], c.latest[i+1:])
			c.latest[len(c.latest)-1] = e
			return e.val
		}
	}
	v := compute()
	if len(c.latest) == cacheSize {
		copy(c.latest, c.latest[1:])
		c.latest = c.latest[:cacheSize-1]
	}
	c.latest = append(c.latest, entry[K, V]{key, v})
	return v
}
