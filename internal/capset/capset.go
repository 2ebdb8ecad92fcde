// Package capset changes the capability sets of the calling thread, which the processes that
// it starts inherit.
package capset

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ClearInherited clears the thread's ambient and inheritable sets, which executed programs
// inherit. The thread keeps its own capabilities. The caller must have locked its goroutine
// to the thread.
func ClearInherited() error {
	// Kernels before 4.3 have no ambient set.
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("clear the ambient capabilities: %w", err)
	}
	s, err := Get()
	if err != nil {
		return err
	}
	s[0].Inheritable, s[1].Inheritable = 0, 0
	return set(s)
}

// Sets are a thread's capability sets: those numbered below 32, and the others.
type Sets [2]unix.CapUserData

// Get reads the calling thread's sets.
func Get() (s Sets, err error) {
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &s[0]); err != nil {
		return s, fmt.Errorf("get the capabilities: %w", err)
	}
	return s, nil
}

// Effective reports whether a capability is in the effective set.
func (s *Sets) Effective(capability int) bool {
	return s[capability/32].Effective&(1<<(capability%32)) != 0
}

// Clear permanently clears all of the thread's sets.
func Clear() error {
	if err := ClearInherited(); err != nil {
		return err
	}
	return set(Sets{})
}

func set(s Sets) error {
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &s[0]); err != nil {
		return fmt.Errorf("set the capabilities: %w", err)
	}
	return nil
}

// Bound permanently removes all but some capabilities from the thread's bounding set, which
// limits what executed programs get. It needs CAP_SETPCAP.
func Bound(leave ...int) error {
	var kept uint64
	for _, c := range leave {
		kept |= 1 << c
	}
	for c := range 64 {
		if kept&(1<<c) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil {
			if errors.Is(err, unix.EINVAL) && c > unix.CAP_SETPCAP {
				return nil // past the last capability that the kernel knows
			}
			return fmt.Errorf("drop capability %d from the bounding set: %w", c, err)
		}
	}
	return nil
}
