package blocked

import (
	"errors"
	"fmt"
	"time"

	"ccagent/agent/process"
	"ccagent/agent/source"
	"ccagent/heap/threads"
	"ccagent/perf"
)

// hostTerms are of the processes of a host. Each moment at which some are looked at wakes a CPU, so these moments, beats, are common
// to all processes: about one a second, at random in its second. A process whose own moment has come is looked at
// with the next beat. Beats know nothing of what programs do, so that this takes nothing from a look's being at random.
var hostTerms = terms{
	least: uint64(time.Second), retry: uint64(256 * time.Millisecond), samples: 32,
	limits: threads.Limits{Threads: 1 << 16, Frames: maxFrames, StackWords: 1 << 14},
}

// longestSearch bounds a search for the threads of one process of a host: it holds up the samples of all others.
const longestSearch = 20 * time.Millisecond

var errNotFound = errors.New("its Haskell threads have not been found yet")

var _ source.Looker = (*blocked)(nil)

// NextLook is how long it is to the next beat, or until a look is repeated that was in vain.
func (b *blocked) NextLook() time.Duration {
	if len(b.images) == 0 {
		return source.Never
	}
	now := perf.Monotonic()
	wait := b.beat.wait(now)
	for _, bi := range b.images {
		if bi.stretches.retries() && !bi.im.Exited {
			wait = min(wait, bi.stretches.wait(now))
		}
	}
	return wait
}

// Look looks at the processes whose moment has come, if it is time for a beat.
func (b *blocked) Look() error {
	now := perf.Monotonic()
	if b.NextLook() > 0 {
		return nil
	}
	if b.beat.wait(now) == 0 {
		b.beat.pass(now, b.terms.least)
	}
	return b.lookAtAll()
}

// Leave accounts for what the log that is left has. What was seen for it and is not sure yet is looked at again.
func (b *blocked) Leave(im *process.Image) error {
	bi := b.images[im.Incarnation]
	if bi == nil {
		return nil
	}
	bi.pending = false
	return b.account(bi)
}

// Missing is why the waits of a process are not known.
func (b *blocked) Missing(im *process.Image, event string) error {
	if event != name {
		return nil
	}
	if err := b.host.Excluded(im, name); err != nil {
		return err
	}
	if bi := b.images[im.Incarnation]; bi != nil {
		return bi.unfound
	}
	return source.ErrNoRTS
}

// Partly is what of the waits of a process is left out.
func (b *blocked) Partly(im *process.Image, event string) error {
	bi := b.images[im.Incarnation]
	if event != name || bi == nil || bi.survey.Threads < b.terms.limits.Threads {
		return nil
	}
	return fmt.Errorf("of more than %d threads the last ones of each list are not looked at", b.terms.limits.Threads)
}
