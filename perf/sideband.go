package perf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	goperf "github.com/elastic/go-perf"
	"golang.org/x/sys/unix"
)

// Mmap is a mapping of executable memory by a process.
type Mmap struct {
	Time     uint64
	PID      uint32
	Start    uint64
	Length   uint64
	Offset   uint64 // in the file
	Major    uint32
	Minor    uint32
	Inode    uint64
	Filename string // path in the process's mount namespace, or a name like "[vdso]"
}

// Exec is the start of another program by a process.
type Exec struct {
	Time uint64
	PID  uint32
	Comm string
}

// Fork is the creation of a process (threads are not reported).
type Fork struct {
	Time   uint64
	PID    uint32
	Parent uint32
}

// Exit is the end of a process's last thread or of one of its threads.
type Exit struct {
	Time uint64
	PID  uint32
	TID  uint32
}

// Change is a *Mmap, *Exec, *Fork or *Exit.
type Change interface{ at() uint64 }

func (m *Mmap) at() uint64 { return m.Time }
func (e *Exec) at() uint64 { return e.Time }
func (f *Fork) at() uint64 { return f.Time }
func (e *Exit) at() uint64 { return e.Time }

// ChangeTime returns the time of a change.
func ChangeTime(c Change) uint64 { return c.at() }

// SideBand reports the mappings, execs, forks and exits of all processes. It is one event that
// counts nothing on each CPU: on threads it would cost the target at each switch of threads.
type SideBand struct {
	rings []*goperf.Event // one per CPU
	// Lost counts records that the kernel dropped, of whatever process.
	Lost uint64
}

const (
	swDummy = 9 // PERF_COUNT_SW_DUMMY
	// sideBandPages is the size of a ring. The kernel lets users lock twice as many.
	sideBandPages = 64
)

// OpenSideBand opens the side band on CPUs; it records from then on.
func OpenSideBand(cpus []int) (_ *SideBand, err error) {
	s := &SideBand{}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	attr := &goperf.Attr{Label: "side band", Type: unix.PERF_TYPE_SOFTWARE, Config: swDummy, ClockID: unix.CLOCK_MONOTONIC}
	attr.SampleFormat.Tid = true
	attr.SampleFormat.Time = true
	attr.SampleFormat.StreamID = true
	o := &attr.Options
	o.Disabled, o.SampleIDAll, o.UseClockID = true, true, true
	o.Mmap, o.Mmap2, o.Comm, o.CommExec, o.Task = true, true, true, true, true
	o.ExcludeKernel, o.ExcludeHypervisor = true, true
	attr.SetWakeupWatermark(1)
	for _, cpu := range cpus {
		ev, err := goperf.OpenWithFlags(attr, goperf.AllThreads, cpu, nil, unix.PERF_FLAG_FD_CLOEXEC)
		if errors.Is(err, unix.ENODEV) {
			continue // offline
		}
		if err != nil {
			return nil, fmt.Errorf("open side band on CPU %d: %w", cpu, err)
		}
		s.rings = append(s.rings, ev)
		if err := ev.MapRingNumPages(sideBandPages); err != nil {
			return nil, fmt.Errorf("map side band of CPU %d: %w", cpu, err)
		}
		if err := ev.Enable(); err != nil {
			return nil, fmt.Errorf("enable side band: %w", err)
		}
	}
	return s, nil
}

// Files returns the rings' file descriptors. Each polls as readable once after records have
// arrived. They are closed with the side band.
func (s *SideBand) Files() ([]int, error) {
	var fds []int
	for _, ring := range s.rings {
		fd, err := ring.FD()
		if err != nil {
			return nil, fmt.Errorf("watch side band: %w", err)
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// Read appends the changes that have arrived, in no particular order across CPUs.
func (s *SideBand) Read(changes []Change) ([]Change, error) {
	var raw goperf.RawRecord
	for _, ring := range s.rings {
		for ring.HasRecord() {
			if err := ring.ReadRawRecord(context.Background(), &raw); err != nil {
				return changes, fmt.Errorf("read side band: %w", err)
			}
			c, err := s.decode(&raw, ring)
			if err != nil {
				s.Lost++
			} else if c != nil {
				changes = append(changes, c)
			}
		}
	}
	return changes, nil
}

func (s *SideBand) decode(raw *goperf.RawRecord, ring *goperf.Event) (Change, error) {
	switch raw.Header.Type {
	case goperf.RecordTypeMmap2:
		var r goperf.Mmap2Record
		if err := r.DecodeFrom(raw, ring); err != nil || !r.Executable() {
			return nil, err
		}
		time, err := trailingTime(raw)
		return &Mmap{Time: time, PID: r.Pid, Start: r.Addr, Length: r.Len, Offset: r.PageOffset,
			Major: r.MajorID, Minor: r.MinorID, Inode: r.Inode, Filename: r.Filename}, err
	case goperf.RecordTypeComm:
		var r goperf.CommRecord
		if err := r.DecodeFrom(raw, ring); err != nil || !r.WasExec() {
			return nil, err
		}
		time, err := trailingTime(raw)
		return &Exec{Time: time, PID: r.Pid, Comm: r.NewName}, err
	case goperf.RecordTypeFork:
		var r goperf.ForkRecord
		if err := r.DecodeFrom(raw, ring); err != nil || r.Pid == r.Ppid {
			return nil, err
		}
		return &Fork{Time: r.Time, PID: r.Pid, Parent: r.Ppid}, nil
	case goperf.RecordTypeExit:
		var r goperf.ExitRecord
		if err := r.DecodeFrom(raw, ring); err != nil {
			return nil, err
		}
		return &Exit{Time: r.Time, PID: r.Pid, TID: r.Tid}, nil
	case goperf.RecordTypeLost:
		var r goperf.LostRecord
		if err := r.DecodeFrom(raw, ring); err != nil {
			return nil, err
		}
		s.Lost += r.Lost
	}
	return nil, nil
}

// trailingTime reads a record's time from its end: pid and tid, time, stream id. The library
// expects it right after the name, ignoring that the kernel pads the name to 8 bytes.
func trailingTime(raw *goperf.RawRecord) (uint64, error) {
	const trailer = 24
	if len(raw.Data) < trailer {
		return 0, goperf.ErrBadRecord
	}
	return binary.NativeEndian.Uint64(raw.Data[len(raw.Data)-16:]), nil
}

// Close closes every event.
func (s *SideBand) Close() error {
	var err error
	for _, ev := range s.rings {
		err = errors.Join(err, ev.Close())
	}
	s.rings = nil
	return err
}
