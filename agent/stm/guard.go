package stm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"ccagent/agent/overhead"
	"ccagent/agent/uprobe"
	"ccagent/bpf"
	"ccagent/perf"
)

// guard takes the probes of a watch out as soon as they were hit as often as the budget allows, which the kernel reports
// (bpf.TransactionWindow.Most). On a busy machine the agent may run a tenth of a second late, for which a program with
// a million transactions a second would pay with more than its budget of ten seconds; so a thread of real-time priority waits for that report.
type guard struct {
	walker *bpf.Sampler
	spent  *ringbuf.Reader
	ring   int // descriptor of spent's ring buffer
	wake   int // descriptor of an event counter, which ends the wait of a watch
	// waiting is the source's own: closed when the thread of a watch does not wait any more, nil while there is none.
	waiting chan struct{}

	mu    sync.Mutex
	round uint64                    // that was set last
	links map[*image]*uprobe.Probes // of probes that are in place until further notice
	cut   *cut
}

// cut is where counting was ended before the source knew.
type cut struct {
	at      uint64              // CLOCK_MONOTONIC, ns
	reached map[*image]progress // how far processes were that had probes
	ended   map[*image]bool     // had probes, and could not be read any more
}

func openGuard(walker *bpf.Sampler) (*guard, error) {
	g := &guard{walker: walker, wake: -1, links: map[*image]*uprobe.Probes{}}
	ring := walker.TransactionSpent()
	var err error
	if g.spent, err = ringbuf.NewReader(ring); err != nil {
		return nil, fmt.Errorf("map the ring buffer of probes of transactions: %w", err)
	}
	g.spent.SetDeadline(time.Unix(1, 0)) // reads return at once
	g.ring = ring.FD()
	if g.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, errors.Join(fmt.Errorf("make an event counter: %w", err), g.spent.Close())
	}
	return g, nil
}

func (g *guard) close() error {
	return errors.Join(g.spent.Close(), unix.Close(g.wake))
}

// set sets the window in which attempts are counted, unless a watch has been cut off.
func (g *guard) set(c bpf.TransactionWindow) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cut != nil {
		return nil
	}
	g.round = c.Round
	return g.walker.ControlTransactions(c)
}

// isSpent reports whether the kernel has reported so many hits as were allowed when the window was set last.
func (g *guard) isSpent() (spent bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var record ringbuf.Record
	for g.spent.ReadInto(&record) == nil { // until it is empty
		round, ok := bpf.TransactionRound(record.RawSample)
		spent = spent || ok && round == g.round
	}
	return spent
}

// within waits for that report for so long, which is at most overhead.ShortSleep, by the kernel's timer.
func (g *guard) within(length time.Duration) bool {
	fd := unix.PollFd{Fd: int32(g.ring), Events: unix.POLLIN}
	ts := unix.NsecToTimespec(int64(length))
	// A raw system call, so that Go's scheduler does not hand the processor to another goroutine.
	n, _, _ := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fd)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	return n == 1 && g.isSpent()
}

// watch waits for that report, and cuts the watch off then, until end is called. background runs a function as a goroutine.
func (g *guard) watch(background func(func())) {
	waiting := make(chan struct{})
	g.waiting = waiting
	background(func() {
		defer overhead.Hasten()()
		var links []*uprobe.Probes
		if g.wait() {
			links = g.cutOff()
		}
		close(waiting)
		closeNow(links)
	})
}

// wait returns true when there were too many hits, false after end.
func (g *guard) wait() bool {
	fds := []unix.PollFd{{Fd: int32(g.ring), Events: unix.POLLIN}, {Fd: int32(g.wake), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || fds[1].Revents != 0:
			return false
		case g.isSpent():
			return true
		}
	}
}

// end ends the wait of a watch.
func (g *guard) end() {
	if g.waiting == nil {
		return
	}
	one := binary.NativeEndian.AppendUint64(nil, 1)
	_, _ = unix.Write(g.wake, one) // has room
	<-g.waiting
	g.waiting = nil
	_, _ = unix.Read(g.wake, one) // there is nothing to read if the thread did not wait any more
}

// cutOff ends counting, and returns the probes that are to be removed.
func (g *guard) cutOff() (links []*uprobe.Probes) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cut != nil {
		return nil
	}
	_ = g.walker.ControlTransactions(bpf.TransactionWindow{}) // whose error the next one has too
	g.cut = &cut{at: perf.Monotonic(), reached: map[*image]progress{}, ended: map[*image]bool{}}
	for si, l := range g.links {
		if p, ok := si.read(); ok {
			g.cut.reached[si] = p
		} else {
			g.cut.ended[si] = true
		}
		links = append(links, l)
	}
	clear(g.links)
	return links
}

// wasCut is where the watch was cut off, nil if it was not.
func (g *guard) wasCut() *cut {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cut
}

// resume allows windows to be set again.
func (g *guard) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut = nil
}

// keep guards probes; false if the watch has been cut off, and they are not wanted any more.
func (g *guard) keep(si *image, l *uprobe.Probes) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cut == nil {
		g.links[si] = l
	}
	return g.cut == nil
}

// take returns the probes of an image that are in place until further notice, which the caller is to remove; nil if there are none.
func (g *guard) take(si *image) *uprobe.Probes {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.links[si]
	delete(g.links, si)
	return l
}
