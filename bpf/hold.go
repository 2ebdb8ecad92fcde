package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Hold is a loaded program that sends a signal to the first thread which reaches its probe,
// so that a tracer can stop the thread there.
type Hold struct {
	state         *ebpf.Map
	program, gate *ebpf.Program
}

// LoadHold loads the program; it sends the given signal. If it is gated, no thread is sent a
// signal until Gate has run with a first argument whose lower half is at least least.
// multi is set if it is attached by links for many probes.
func LoadHold(signal unix.Signal, gated bool, least uint32, multi bool) (*Hold, error) {
	var ns unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &ns); err != nil {
		return nil, fmt.Errorf("read own pid namespace: %w; /proc must be mounted", err)
	}
	spec, err := loadHold()
	if err != nil {
		return nil, fmt.Errorf("read embedded program: %w", err)
	}
	if multi {
		for _, p := range spec.Programs {
			p.AttachType = ebpf.AttachTraceUprobeMulti
		}
	}
	loaded, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, fmt.Errorf("load the program that holds a thread: %w", err)
	}
	defer loaded.Close()
	h := &Hold{state: loaded.DetachMap(holdMapHold), program: loaded.DetachProgram(holdProgOnHold), gate: loaded.DetachProgram(holdProgOnGate)}
	state := holdHoldState{PidnsDev: ns.Dev, PidnsIno: ns.Ino, Signal: uint32(signal), Armed: 1, Least: least}
	if gated {
		state.Armed = 0
	}
	if err := h.state.Put(uint32(0), &state); err != nil {
		return nil, errors.Join(fmt.Errorf("configure the program that holds a thread: %w", err), h.Close())
	}
	return h, nil
}

// Program is the program to attach to the probe. The Hold owns it.
func (h *Hold) Program() *ebpf.Program { return h.program }

// Gate is the program to attach to the first instruction of the function that decides. The Hold
// owns it.
func (h *Hold) Gate() *ebpf.Program { return h.gate }

// Thread is the id of the thread that was sent the signal, 0 while there is none, and when that
// was, by CLOCK_MONOTONIC in ns. The error is that of sending the signal, if it failed.
func (h *Hold) Thread() (tid int, since uint64, err error) {
	var s holdHoldState
	if err := h.state.Lookup(uint32(0), &s); err != nil {
		return 0, 0, fmt.Errorf("read which thread came: %w", err)
	}
	if s.Result < 0 {
		return 0, 0, fmt.Errorf("send the thread a signal: %w", unix.Errno(-s.Result))
	}
	return int(s.Tid), s.Time, nil
}

// Close unloads the program.
func (h *Hold) Close() error {
	return errors.Join(h.program.Close(), h.gate.Close(), h.state.Close())
}
