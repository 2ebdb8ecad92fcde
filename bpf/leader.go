package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

// Leaders is the loaded pair of programs that find the thread which leads a major collection, and
// send it a signal where the collection ends. Wishes and states are by process id.
type Leaders struct {
	maps               leaderMaps
	collect, collected *ebpf.Program
	records            *ringbuf.Reader
}

// LeaderWish is what is wanted of a process.
type LeaderWish struct {
	Due    uint64 // from this time (CLOCK_MONOTONIC, ns) on, one major collection is reported
	Armed  uint64 // the number of the major collection whose leader is to be sent the signal; 0 for none
	Least  uint32 // the oldest generation
	Signal unix.Signal
}

// LeaderState is what was seen of a process.
type LeaderState struct {
	Collections, Majors uint64 // that have begun
	Passed              uint64 // the last major collection that has ended
	Held                uint64 // the last one whose leader was sent the signal
	Time                uint64 // when that was, CLOCK_MONOTONIC, ns
}

// Leader is a thread that leads a major collection, which has just begun.
type Leader struct {
	PID, TID uint32
	Major    uint64 // the collection's number in its process, from 1
}

// LoadLeaders loads the programs; if multi is set, for links of many probes.
func (s *Sampler) LoadLeaders(multi bool) (*Leaders, error) {
	spec, err := loadLeader()
	if err != nil {
		return nil, fmt.Errorf("read embedded program of collections: %w", err)
	}
	if ns := s.config.PIDNamespace; ns != nil {
		if err := spec.Variables[leaderVarPidnsIno].Set(ns.Ino); err != nil {
			return nil, fmt.Errorf("configure the program of collections: %w", err)
		}
	}
	if multi {
		for _, p := range spec.Programs {
			p.AttachType = ebpf.AttachTraceUprobeMulti
		}
	}
	loaded, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: kernelTypes()})
	if err != nil {
		return nil, fmt.Errorf("load the program of collections: %w", err)
	}
	defer loaded.Close()
	l := &Leaders{
		maps:    leaderMaps{Leaders: loaded.DetachMap(leaderMapLeaders), Wishes: loaded.DetachMap(leaderMapWishes), States: loaded.DetachMap(leaderMapStates)},
		collect: loaded.DetachProgram(leaderProgOnCollect), collected: loaded.DetachProgram(leaderProgOnCollected),
	}
	if l.records, err = ringbuf.NewReader(l.maps.Leaders); err != nil {
		return nil, errors.Join(fmt.Errorf("read which threads collect: %w", err), l.Close())
	}
	return l, nil
}

// Collect is the program to attach where a collection begins, whose first argument is the oldest
// generation that is collected. The Leaders own it.
func (l *Leaders) Collect() *ebpf.Program { return l.collect }

// Collected is the program to attach where a thread is to be held. The Leaders own it.
func (l *Leaders) Collected() *ebpf.Program { return l.collected }

// Follow makes a process known, of which nothing is wanted yet.
func (l *Leaders) Follow(pid, least uint32) error {
	if err := l.maps.States.Put(pid, leaderLeaderState{Reported: never}); err != nil {
		return fmt.Errorf("follow the collections of process %d: %w", pid, err)
	}
	return l.Wish(pid, LeaderWish{Due: never, Least: least})
}

// never is a time that does not come.
const never = ^uint64(0)

// Wish says what is wanted of a process.
func (l *Leaders) Wish(pid uint32, w LeaderWish) error {
	if err := l.maps.Wishes.Put(pid, leaderLeaderWish{Due: w.Due, Armed: w.Armed, Least: w.Least, Signal: uint32(w.Signal)}); err != nil {
		return fmt.Errorf("ask for a collection of process %d: %w", pid, err)
	}
	return nil
}

// State is what was seen of a process. The error is that of sending the signal too, if it failed.
func (l *Leaders) State(pid uint32) (LeaderState, error) {
	var s leaderLeaderState
	if err := l.maps.States.Lookup(pid, &s); err != nil {
		return LeaderState{}, fmt.Errorf("read the collections of process %d: %w", pid, err)
	}
	state := LeaderState{Collections: s.Collections, Majors: s.Majors, Passed: s.Passed, Held: s.Held, Time: s.Time}
	if s.Result < 0 {
		return state, fmt.Errorf("send the thread that collects a signal: %w", unix.Errno(-s.Result))
	}
	return state, nil
}

// Forget has a process no longer followed.
func (l *Leaders) Forget(pid uint32) error {
	var errs []error
	for _, m := range []*ebpf.Map{l.maps.Wishes, l.maps.States} {
		if err := m.Delete(pid); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, fmt.Errorf("forget the collections of process %d: %w", pid, err))
		}
	}
	return errors.Join(errs...)
}

// ErrNoLeader is returned where no collection was reported in time.
var ErrNoLeader = errors.New("no major collection was reported")

// Next waits for the report of a collection, on the calling thread; until a time, or for ever if
// that is zero. Close ends the wait with an error.
func (l *Leaders) Next(until time.Time) (Leader, error) {
	l.records.SetDeadline(until)
	r, err := l.records.Read()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, ringbuf.ErrFlushed):
		return Leader{}, ErrNoLeader
	case err != nil:
		return Leader{}, err
	case len(r.RawSample) < 16:
		return Leader{}, ErrNoLeader
	}
	word := binary.NativeEndian
	return Leader{Major: word.Uint64(r.RawSample), PID: word.Uint32(r.RawSample[8:]), TID: word.Uint32(r.RawSample[12:])}, nil
}

// Wake ends a wait in Next, with ErrNoLeader.
func (l *Leaders) Wake() error { return l.records.Flush() }

// RunStats is what the programs have cost in BPF.
func (l *Leaders) RunStats() (RunStats, error) { return RunStatsOf(l.collect, l.collected) }

// Close unloads everything.
func (l *Leaders) Close() error {
	errs := []error{l.collect.Close(), l.collected.Close(), l.maps.Close()}
	if l.records != nil {
		errs = append(errs, l.records.Close())
	}
	return errors.Join(errs...)
}
