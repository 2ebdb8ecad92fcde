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
	state   *ebpf.Map
	program *ebpf.Program
}

// LoadHold loads the program; it sends the given signal.
func LoadHold(signal unix.Signal) (*Hold, error) {
	var ns unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &ns); err != nil {
		return nil, fmt.Errorf("read own pid namespace: %w; /proc must be mounted", err)
	}
	spec, err := loadHold()
	if err != nil {
		return nil, fmt.Errorf("read embedded program: %w", err)
	}
	loaded, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, fmt.Errorf("load the program that holds a thread: %w", err)
	}
	defer loaded.Close()
	h := &Hold{state: loaded.DetachMap(holdMapHold), program: loaded.DetachProgram(holdProgOnHold)}
	if err := h.state.Put(uint32(0), &holdHoldState{PidnsDev: ns.Dev, PidnsIno: ns.Ino, Signal: uint32(signal), Armed: 1}); err != nil {
		return nil, errors.Join(fmt.Errorf("configure the program that holds a thread: %w", err), h.Close())
	}
	return h, nil
}

// Program is the program to attach to the probe. The Hold owns it.
func (h *Hold) Program() *ebpf.Program { return h.program }

// Thread is the id of the thread that was sent the signal, 0 while there is none. The error
// is that of sending the signal, if it failed.
func (h *Hold) Thread() (tid int, err error) {
	var s holdHoldState
	if err := h.state.Lookup(uint32(0), &s); err != nil {
		return 0, fmt.Errorf("read which thread came: %w", err)
	}
	if s.Result < 0 {
		return 0, fmt.Errorf("send the thread a signal: %w", unix.Errno(-s.Result))
	}
	return int(s.Tid), nil
}

// Close unloads the program.
func (h *Hold) Close() error { return errors.Join(h.program.Close(), h.state.Close()) }
