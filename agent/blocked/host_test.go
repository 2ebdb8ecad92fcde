package blocked

import (
	"errors"
	"testing"
	"time"

	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/source"
)

// ofHost is a source of the processes of a host, each of which may have a part of a CPU's time; 0 is no bound.
func ofHost(all float64, each ...float64) (*blocked, []*image) {
	budgets := map[*process.Image]*overhead.Budget{}
	h := &source.Host{OwnLogs: true, Budget: &overhead.Budget{Asked: all}}
	h.Budgets = func(im *process.Image) *overhead.Budget { return budgets[im] }
	b := &blocked{host: h, images: map[uint32]*image{}, terms: hostTerms}
	var images []*image
	for i, asked := range each {
		im := &process.Image{Incarnation: uint32(i)}
		budgets[im] = &overhead.Budget{Asked: asked}
		bi := &image{im: im, stretches: newStretches(0, b.terms.least)}
		b.images[im.Incarnation] = bi
		images = append(images, bi)
	}
	return b, images
}

// The looks at all processes of a host together keep within the budget of all, and those at one within its own.
func TestHostBudget(t *testing.T) {
	b, images := ofHost(0.01, 0.1, 0.1, 0.0004)
	for _, bi := range images {
		b.sum += bi.stretches.charge(1e6)
	}
	// 3 ms in each round, of half of 1 % of the time.
	for i, want := range []time.Duration{time.Second, time.Second, 5 * time.Second} {
		if got := time.Duration(b.length(images[i])); got != want {
			t.Errorf("process %d is looked at each %v, want %v", i, got, want)
		}
	}
	b.sum += images[0].stretches.charge(81e6) // an eighth of what it rises by counts
	for i, want := range []time.Duration{2600 * time.Millisecond, 2600 * time.Millisecond, 5 * time.Second} {
		if got := time.Duration(b.length(images[i])); got != want {
			t.Errorf("when one has become dear, process %d is looked at each %v, want %v", i, got, want)
		}
	}
	if err := b.Detach(images[0].im, 0); err != nil {
		t.Fatal(err)
	}
	if b.sum != 2e6 {
		t.Errorf("when it has ended, looking takes %v ns", b.sum)
	}
	unbound, all := ofHost(0, 0)
	unbound.sum += all[0].stretches.charge(1e9)
	if got := unbound.length(all[0]); got != hostTerms.least {
		t.Errorf("without a bound it is looked at each %v", time.Duration(got))
	}
}

// A process is missing for a reason until its threads are found, and one that a rule leaves out always is.
func TestMissing(t *testing.T) {
	b, images := ofHost(0.01, 0.1)
	im := images[0].im
	images[0].unfound = errNotFound
	if err := b.Missing(im, name); !errors.Is(err, errNotFound) {
		t.Errorf("before its threads are found: %v", err)
	}
	images[0].unfound = nil
	if err := b.Missing(im, name); err != nil {
		t.Errorf("when they are: %v", err)
	}
	if err := b.Missing(&process.Image{Incarnation: 7}, name); !errors.Is(err, source.ErrNoRTS) {
		t.Errorf("of a process without a run-time system: %v", err)
	}
	if err := b.Missing(im, "gc"); err != nil {
		t.Errorf("of another event: %v", err)
	}
	b.host.Without = func(*process.Image, string) bool { return true }
	if err := b.Missing(im, name); !errors.Is(err, source.ErrExcluded) {
		t.Errorf("of one that a rule leaves out: %v", err)
	}
}

// Beats are common: however many processes there are, the next one is as far as the beat's moment, unless a look is repeated.
func TestBeats(t *testing.T) {
	b, images := ofHost(0, 0, 0)
	if empty, _ := ofHost(0); empty.NextLook() != source.Never {
		t.Error("without a process there is something to do")
	}
	far := ^uint64(0) >> 2
	b.beat.due = far
	images[0].stretches.due, images[1].stretches.due = 0, 0 // their moments have come
	if b.NextLook() < time.Hour {
		t.Error("a process is looked at before the beat")
	}
	images[1].stretches.retry(0, hostTerms.retry)
	if b.NextLook() != 0 {
		t.Error("a look that was in vain waits for the beat")
	}
	images[1].im.Exited = true
	if b.NextLook() < time.Hour {
		t.Error("a process that has ended is looked at again")
	}
}
