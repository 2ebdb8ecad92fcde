package perf

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// OnCPUs is an event that is open on CPUs: it overflows in whatever process runs there, and
// costs nothing where threads are switched.
type OnCPUs struct {
	Event   Event
	rate    Rate
	program *ebpf.Program
	open    map[int][]opened // by CPU
	enabled bool
	past    Count // of what was closed
}

// opened is a file descriptor, and what it had counted when that was read last.
type opened struct {
	fd   int
	last Count
}

// OpenOnCPUs opens the event on CPUs, disabled, with the program to run at every overflow. The
// error is an *UnavailableError if the event cannot be sampled so.
func OpenOnCPUs(e Event, r Rate, program *ebpf.Program, cpus []int) (*OnCPUs, error) {
	o := &OnCPUs{Event: e, rate: r, program: program, open: map[int][]opened{}}
	if err := o.Move(cpus); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// CPUs lists the CPUs on which the event is open.
func (o *OnCPUs) CPUs() []int { return slices.Sorted(maps.Keys(o.open)) }

// Move has the event open on these CPUs and no others. One that has gone offline since is not
// opened; it is no error.
func (o *OnCPUs) Move(cpus []int) error {
	for cpu := range o.open {
		if !slices.Contains(cpus, cpu) {
			if err := o.closeOn(cpu); err != nil {
				return err
			}
		}
	}
	for _, cpu := range cpus {
		if o.open[cpu] != nil {
			continue
		}
		if err := o.openOn(cpu); err != nil {
			return err
		}
	}
	return nil
}

func (o *OnCPUs) openOn(cpu int) (err error) {
	attrs := perCPU(o.Event, o.rate)
	var fds []opened
	defer func() {
		if err != nil {
			for _, f := range fds {
				unix.Close(f.fd)
			}
		}
	}()
	for i := range attrs {
		fd, err := openPerf(&attrs[i], -1, cpu)
		switch {
		case errors.Is(err, unix.ENODEV): // offline
			return nil
		case errors.Is(err, unix.ENOENT) && len(attrs) > 1: // a core of the other kind
			continue
		case errors.Is(err, unix.EMFILE):
			return fmt.Errorf("open %s on CPU %d: %w; raise the limit on open files (ulimit -n)", o.Event, cpu, err)
		case err != nil:
			return explainOpen(o.Event, err)
		}
		fds = append(fds, opened{fd: fd})
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, o.program.FD()); err != nil {
			return fmt.Errorf("attach the stack walker to %s: %w", o.Event, err)
		}
		if o.enabled {
			if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
				return fmt.Errorf("enable %s: %w", o.Event, err)
			}
		}
	}
	if len(fds) == 0 {
		return explainOpen(o.Event, unix.ENOENT)
	}
	o.open[cpu] = fds
	return nil
}

// perCPU returns the attributes to open on a CPU. A clock has a period, not a frequency: the
// kernel would compute the one from the other, and weights are multiples of it.
func perCPU(e Event, r Rate) []unix.PerfEventAttr {
	if e.Clock() && r.Frequency != 0 {
		r = Rate{Period: 1e9 / r.Frequency}
	}
	attrs := attributes(e, r)
	for i := range attrs {
		attrs[i].Bits &^= unix.PerfBitInherit
		if e.Clock() {
			attrs[i].Bits |= unix.PerfBitExcludeIdle
		}
	}
	return attrs
}

func (o *OnCPUs) closeOn(cpu int) error {
	var errs []error
	for _, f := range o.open[cpu] {
		if c, err := readCount(f.fd); err == nil {
			o.past.add(c)
		}
		errs = append(errs, unix.Close(f.fd))
	}
	delete(o.open, cpu)
	return errors.Join(errs...)
}

// each calls f with each file descriptor.
func (o *OnCPUs) each(f func(fd int) error) error {
	var errs []error
	for _, fds := range o.open {
		for i := range fds {
			errs = append(errs, f(fds[i].fd))
		}
	}
	return errors.Join(errs...)
}

// Enable starts sampling.
func (o *OnCPUs) Enable() error {
	o.enabled = true
	if err := o.each(func(fd int) error { return unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0) }); err != nil {
		return fmt.Errorf("enable %s: %w", o.Event, err)
	}
	return nil
}

// Disable stops sampling; records in the ring buffer can still be read.
func (o *OnCPUs) Disable() error {
	o.enabled = false
	return o.each(func(fd int) error { return unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_DISABLE, 0) })
}

// SetRate samples at another rate from now on. Both are frequencies, or both periods. A clock is
// opened anew: the kernel would go on to report its first period with its samples.
func (o *OnCPUs) SetRate(r Rate) error {
	o.rate = r
	if o.Event.Clock() {
		for _, cpu := range o.CPUs() {
			if err := errors.Join(o.closeOn(cpu), o.openOn(cpu)); err != nil {
				return err
			}
		}
		return nil
	}
	value := max(r.Frequency, r.Period)
	err := o.each(func(fd int) error {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_PERIOD, uintptr(unsafe.Pointer(&value)))
		if errno != 0 {
			return errno
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("change the rate of %s: %w", o.Event, err)
	}
	return nil
}

// Revive opens the event anew on CPUs where it has not run since the last call: they were
// offline meanwhile. It reports whether there was one.
func (o *OnCPUs) Revive() (revived bool, err error) {
	for _, cpu := range o.CPUs() {
		dead := false
		for i := range o.open[cpu] {
			f := &o.open[cpu][i]
			c, err := readCount(f.fd)
			if err != nil {
				return revived, fmt.Errorf("read count of %s: %w", o.Event, err)
			}
			dead = dead || o.enabled && f.last.EnabledNs != 0 && c.EnabledNs == f.last.EnabledNs
			f.last = c
		}
		if !dead {
			continue
		}
		revived = true
		if err := errors.Join(o.closeOn(cpu), o.openOn(cpu)); err != nil {
			return revived, err
		}
	}
	return revived, nil
}

// Files is the number of file descriptors that Count reads.
func (o *OnCPUs) Files() int { return len(o.open) }

// Count sums the counts of all CPUs, of all processes: its EnabledNs is time of CPUs.
func (o *OnCPUs) Count() (Count, error) {
	sum := o.past
	err := o.each(func(fd int) error {
		c, err := readCount(fd)
		sum.add(c)
		return err
	})
	if err != nil {
		return sum, fmt.Errorf("read count of %s: %w", o.Event, err)
	}
	return sum, nil
}

// Close closes the event on every CPU.
func (o *OnCPUs) Close() error {
	err := o.each(unix.Close)
	clear(o.open)
	return err
}
