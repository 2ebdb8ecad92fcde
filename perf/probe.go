package perf

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"ccagent/internal/restriction"
)

// UnavailableError is returned if this machine cannot count an event, with the reason and
// what would help.
type UnavailableError struct {
	Event  string
	Reason string
	Help   string // may be empty
	Err    error  // the kernel's error
	// Permission is set if the event exists but the caller may not use it.
	Permission bool
}

func (e *UnavailableError) Error() string {
	s := fmt.Sprintf("event %s is not available: %s", e.Event, e.Reason)
	if e.Help != "" {
		s += "; " + e.Help
	}
	return s
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// Probe checks whether the event can be sampled here, by opening it, disabled, on the
// calling thread. A non-nil error is an *UnavailableError.
func Probe(e Event) error {
	attrs := attributes(e, Rate{Period: 1 << 40})
	for i := range attrs {
		fd, err := open(&attrs[i], 0)
		if err != nil {
			return explainProbe(e, attrs[i], err)
		}
		if err := unix.Close(fd); err != nil {
			return fmt.Errorf("close %s: %w", e, err)
		}
	}
	return nil
}

// Grant returns the event as it can be sampled here: with the most precise addresses that
// the PMU supports, up to those requested. The error is Probe's.
func Grant(e Event) (Event, error) {
	if runtime.GOARCH != "amd64" {
		e.Precise = 0 // the kernel accepts the request but ignores it
	}
	err := Probe(e)
	for err != nil && e.Precise > 0 {
		e.Precise--
		err = Probe(e)
	}
	return e, err
}

// explainProbe distinguishes an event that cannot be counted from one that cannot be
// sampled.
func explainProbe(e Event, attr unix.PerfEventAttr, err error) error {
	attr.Sample, attr.Bits = 0, unix.PerfBitDisabled
	if errors.Is(err, unix.EINVAL) && e.Precise == 0 {
		if fd, counts := open(&attr, 0); counts == nil {
			unix.Close(fd)
			return &UnavailableError{Event: e.String(), Err: err,
				Reason: "its unit counts it, but cannot interrupt, which sampling needs", Help: "perf stat counts it"}
		}
	}
	return explainOpen(e, err)
}

// explainOpen converts an error of perf_event_open to an UnavailableError.
func explainOpen(e Event, err error) error {
	u := &UnavailableError{Event: e.String(), Err: err}
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		u.Permission = true
		u.Reason = "permission denied"
		if level, ok := paranoid(); ok {
			u.Reason = fmt.Sprintf("permission denied (kernel.perf_event_paranoid is %d)", level)
		}
		u.Help = "run it as root, or with CAP_PERFMON and CAP_BPF"
		if reason, help := restriction.Why(err); reason != "" {
			u.Reason, u.Help = reason, help
		}
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENODEV):
		switch {
		case e.Kind == "software":
			u.Reason = "the kernel does not count it"
		case !HasPMU():
			u.Reason = "this machine has no hardware counters (a virtual machine without a PMU?)"
			u.Help = "use " + ClockEvent + ", or enable the virtual PMU in the hypervisor"
		default:
			u.Reason = "this CPU does not count it"
			u.Help = "see its manual for a code of its own that does (-e rXXXX)"
		}
	case errors.Is(err, unix.EINVAL):
		u.Reason = "the kernel refuses it with these settings"
	case errors.Is(err, unix.EBUSY):
		u.Reason = "the counters are taken by somebody else (the NMI watchdog takes one)"
		u.Help = "stop the other profiler, or set kernel.nmi_watchdog=0"
	case errors.Is(err, unix.ENOSYS):
		u.Reason = "the kernel is built without perf events"
	default:
		u.Reason = err.Error()
	}
	return u
}

// HasPMU reports whether the kernel has a driver for hardware counters.
func HasPMU() bool {
	fd, err := open(&attributes(generic[0], Rate{Period: 1 << 40})[0], 0)
	if err != nil {
		return !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EOPNOTSUPP)
	}
	unix.Close(fd)
	return true
}

func paranoid() (int, bool) { return readIntSetting("/proc/sys/kernel/perf_event_paranoid") }

// MaxRate is the highest sampling frequency that the kernel accepts, in Hz.
func MaxRate() (int, bool) { return readIntSetting("/proc/sys/kernel/perf_event_max_sample_rate") }

func readIntSetting(path string) (int, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	return n, err == nil
}
