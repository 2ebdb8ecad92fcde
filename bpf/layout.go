package bpf

import (
	"fmt"
	"strconv"
	"strings"
)

// HeapLayout gives the offsets of the fields that the walker reads, in a
// version and way of GHC's run-time system (offsetof on each version's own
// rts/storage/TSO.h and Closures.h).
func HeapLayout(version string, profiled, threaded bool) (l ProcessLayout, assumed bool) {
	const header, profiledHeader = 8, 24
	l = ProcessLayout{
		Header:      header,
		TsoStackobj: 24,
		TsoId:       56,
		StackSize:   8,
		StackSp:     16,
		StackFirst:  24,
	}
	const baseFromCapability = 24 // sizeof(StgFunTable)
	l.TotalAllocated = 1200 - baseFromCapability
	if threaded {
		// Behind the thread's id, condition variable and lock. The RTS's
		// Condition grew by a clock's id when the collector's spin locks gave
		// way to it, in 9.2.
		l.TaskIncall = 128
	} else {
		l.TaskIncall = 8
	}
	known := true
	v, err := parseGHCVersion(version)
	switch {
	case err != nil || v.before(8, 10) || !v.before(9, 15):
		known = false
	case v.before(9, 10):
		l.TsoId = 48
	}
	if known && v.before(9, 2) {
		if threaded {
			l.TaskIncall = 120
		}
		l.TotalAllocated = 1184 - baseFromCapability
	}
	switch {
	case !known || !v.before(9, 10):
		l.TsoLabel = 96
	case !v.before(9, 6):
		l.TsoLabel = 88
	}
	if profiled {
		l.TsoCccs = 152
		switch {
		case known && v.before(9, 6):
			l.TsoCccs = 136
		case known && v.before(9, 10):
			l.TsoCccs = 144
		}
		// Every object's header grows by the cost-centre stack and the
		// word for retainers and biographies.
		const growth = profiledHeader - header
		l.Header += growth
		l.TsoStackobj += growth
		l.TsoId += growth
		if l.TsoLabel != 0 {
			l.TsoLabel += growth
		}
		l.StackSize += growth
		l.StackSp += growth
		l.StackFirst += growth
	}
	const word = 8
	l.TsoRead = max(l.TsoId, l.TsoLabel) + word
	return l, !known
}

// WhyBlocked gives the offset of a thread's why_blocked in its TSO, and whether it is
// a word of 32 bits there, not of 16.
func WhyBlocked(version string, profiled bool) (offset uint16, wide bool) {
	v, err := parseGHCVersion(version)
	offset, wide = 40, true
	if err == nil && v.before(9, 10) {
		offset, wide = 34, false
	}
	if profiled {
		offset += 16
	}
	return offset, wide
}

// TickyEntries gives the offset of StgEntCounter.entry_count, from which on the
// fields depend on the version; false where it is not known.
func TickyEntries(version string) (offset uint16, ok bool) {
	v, err := parseGHCVersion(version)
	switch {
	case err != nil, v.before(8, 10), !v.before(9, 15):
		return 0, false
	case v.before(9, 4):
		return 40, true
	case v.before(9, 6):
		return 0, false
	}
	return 56, true
}

type ghcVersion struct{ major, minor int }

func (v ghcVersion) before(major, minor int) bool {
	return v.major < major || v.major == major && v.minor < minor
}

func parseGHCVersion(s string) (ghcVersion, error) {
	parts := strings.SplitN(s, ".", 3)
	if len(parts) < 2 {
		return ghcVersion{}, fmt.Errorf("parse GHC version %q", s)
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return ghcVersion{}, fmt.Errorf("parse GHC version %q: %w", s, err)
	}
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		return ghcVersion{}, fmt.Errorf("parse GHC version %q: %w", s, err)
	}
	return ghcVersion{major, minor}, nil
}
