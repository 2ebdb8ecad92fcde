package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// SampleHeader leads every record in the ring buffer; FrameCount frames of
// eight bytes follow it.
type SampleHeader = samplerSampleHeader

// CCSRecord tells of a cost-centre stack; it stands in place of frames.
type CCSRecord = samplerCcsRecord

// TickyRecord is a counter of a -ticky program; several stand in place of frames.
type TickyRecord = samplerTickyRecord

// CCSWhy says what is known of a cost-centre stack.
type CCSWhy = samplerCcsWhy

// What is known of a cost-centre stack.
const (
	CCSWhole       = samplerCcsWhyCCS_WHOLE
	CCSUnreadable  = samplerCcsWhyCCS_UNREADABLE
	CCSImplausible = samplerCcsWhyCCS_IMPLAUSIBLE
	CCSTooDeep     = samplerCcsWhyCCS_TOO_DEEP
)

// ProcessLayout is what the walker must know of a process.
type ProcessLayout = samplerProcessLayout

// Kinds of records, as SampleHeader.Record tells them.
const (
	RecordSample = uint8(samplerRecordTypeRECORD_SAMPLE)
	RecordLabel  = uint8(samplerRecordTypeRECORD_LABEL)
	RecordCCS    = uint8(samplerRecordTypeRECORD_CCS)
	RecordTicky  = uint8(samplerRecordTypeRECORD_TICKY)
	// RecordAllocated tells, in SampleHeader.Total, what a process that ends has
	// allocated.
	RecordAllocated = uint8(samplerRecordTypeRECORD_ALLOCATED)
	// RecordWait is a sample of a thread that ceases to run; RecordWake tells, in
	// SampleHeader.Period, for how long it did not.
	RecordWait = uint8(samplerRecordTypeRECORD_WAIT)
	RecordWake = uint8(samplerRecordTypeRECORD_WAKE)
)

// Limits and encodings of C's record.h that no BTF type carries. A test holds
// them against the headers.
const (
	MaxFrames        = 512
	MaxLeafFrames    = MaxFrames - 64 - 1
	FrameKindShift   = 56
	FrameAddressMask = 1<<FrameKindShift - 1
)

// Config is fixed when the programs are loaded.
type Config struct {
	// MaxFrames bounds the recorded frames of a stack's leaf part, at most
	// MaxLeafFrames.
	MaxFrames int
	// KernelStacks asks for the kernel's frames of samples that hit there.
	KernelStacks bool
	// CPUs is the number of possible CPUs.
	CPUs int
	// RingBytes is the size of the ring buffer, a power of two.
	RingBytes int
	// UnwindRows is the room for call frame information, in rows of all
	// modules together.
	UnwindRows int
	// PIDNamespace is given when the caller is not in the initial one:
	// process ids in records are then that namespace's.
	PIDNamespace *PIDNamespace
}

// Cautious guesses at how many rows share a rule (on real programs some
// hundreds), and how many are in a bucket (some ten, but code without call frame
// information has buckets too).
const (
	rowsPerRule   = 32
	rowsPerBucket = 4
)

// Sampler is the loaded walker: its maps, and one program for every event that
// it samples.
type Sampler struct {
	config   Config
	spec     *ebpf.CollectionSpec
	types    *btf.Cache // of the kernel, which take longer to read than a small program to load
	maps     samplerMaps
	unwind   *unwindTables
	walks    *ebpf.Memory    // one a CPU for events, for probes, for switches of threads
	loaded   sync.Mutex      // guards the programs' lists: programs may be loaded side by side
	programs []*ebpf.Program // of events
	probes   []*ebpf.Program // of allocation
	others   []*ebpf.Program
	epoch    uint32 // of layouts and regions
}

// walkSize is the size of what a CPU's walks work on.
const walkSize = int64(unsafe.Sizeof(samplerWalk{}))

// Load creates the maps. It needs CAP_BPF and CAP_PERFMON, or root.
func Load(c Config) (*Sampler, error) {
	if c.MaxFrames < 1 || c.MaxFrames > MaxLeafFrames {
		return nil, fmt.Errorf("load sampler: frame budget %d is not in 1..%d", c.MaxFrames, MaxLeafFrames)
	}
	if jitIsOff() {
		return nil, ErrNoJIT
	}
	spec, err := loadSampler()
	if err != nil {
		return nil, fmt.Errorf("read embedded sampler: %w", err)
	}
	spec.Maps[samplerMapSamples].MaxEntries = uint32(c.RingBytes)
	spec.Maps[samplerMapWalks].MaxEntries = uint32(3 * c.CPUs)
	spec.Maps[samplerMapUnwindRows].MaxEntries = uint32(c.UnwindRows)
	spec.Maps[samplerMapUnwindRules].MaxEntries = uint32(c.UnwindRows/rowsPerRule + 1)
	spec.Maps[samplerMapUnwindBuckets].MaxEntries = uint32(c.UnwindRows/rowsPerBucket + 2)
	s := &Sampler{config: c, spec: spec, types: btf.NewCache()}
	// Only the maps; programs are loaded one for each event.
	if err := spec.LoadAndAssign(&s.maps, nil); err != nil {
		return nil, fmt.Errorf("create BPF maps: %w", err)
	}
	if s.walks, err = s.maps.Walks.Memory(); err != nil {
		return nil, errors.Join(fmt.Errorf("map walks: %w", err), s.maps.Close())
	}
	if s.unwind, err = newUnwindTables(&s.maps); err != nil {
		return nil, errors.Join(err, s.maps.Close())
	}
	if err := s.SetKeep(1); err != nil {
		return nil, errors.Join(err, s.maps.Close())
	}
	return s, nil
}

// EventProgram loads the program that runs at the overflows of the event of
// that index. The sampler owns it.
func (s *Sampler) EventProgram(event int) (*ebpf.Program, error) {
	return s.load(samplerProgOnEvent, event, false, &s.programs)
}

// SwitchProgram loads the program that runs where the kernel switches threads; it
// samples waits as the event of that index. The sampler owns it.
func (s *Sampler) SwitchProgram(event int) (*ebpf.Program, error) {
	return s.load(samplerProgOnSwitch, event, false, &s.programs)
}

// ShutdownProgram loads the program that reads ticky counters where a run-time
// system shuts down. The sampler owns it.
func (s *Sampler) ShutdownProgram() (*ebpf.Program, error) {
	return s.load(samplerProgOnShutdown, 0, false, &s.others)
}

// load loads a program, made for links of many probes if multi is set, and adds it to a list
// of those that the sampler owns.
func (s *Sampler) load(name string, event int, multi bool, list *[]*ebpf.Program) (*ebpf.Program, error) {
	p, err := s.program(name, event, multi)
	if err == nil {
		s.loaded.Lock()
		*list = append(*list, p)
		s.loaded.Unlock()
	}
	return p, err
}

func (s *Sampler) program(name string, event int, multi bool) (*ebpf.Program, error) {
	spec := s.spec.Copy()
	for other := range spec.Programs {
		if other != name {
			delete(spec.Programs, other)
		}
	}
	if multi {
		spec.Programs[name].AttachType = ebpf.AttachTraceUprobeMulti
	}
	set := func(name string, value any) error { return spec.Variables[name].Set(value) }
	var kernelStacks uint8
	if s.config.KernelStacks {
		kernelStacks = 1
	}
	err := errors.Join(
		set(samplerVarEventIndex, uint16(event)),
		set(samplerVarCpus, uint32(s.config.CPUs)),
		set(samplerVarMaxFrames, uint32(s.config.MaxFrames)),
		set(samplerVarKernelStacks, kernelStacks))
	if ns := s.config.PIDNamespace; ns != nil {
		err = errors.Join(err, set(samplerVarPidnsDev, ns.Dev), set(samplerVarPidnsIno, ns.Ino))
	}
	if err != nil {
		return nil, fmt.Errorf("configure sampler: %w", err)
	}
	loaded, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: s.types, MapReplacements: map[string]*ebpf.Map{
		samplerMapSamples:       s.maps.Samples,
		samplerMapLayouts:       s.maps.Layouts,
		samplerMapRegions:       s.maps.Regions,
		samplerMapUnwindRows:    s.maps.UnwindRows,
		samplerMapUnwindRules:   s.maps.UnwindRules,
		samplerMapUnwindBuckets: s.maps.UnwindBuckets,
		samplerMapWalks:         s.maps.Walks,
		samplerMapThreads:       s.maps.Threads,
		samplerMapLabels:        s.maps.Labels,
		samplerMapAllocAccounts: s.maps.AllocAccounts,
		samplerMapLost:          s.maps.Lost,
		samplerMapToldStacks:    s.maps.ToldStacks,
		samplerMapWaits:         s.maps.Waits,
		samplerMapWaitBuckets:   s.maps.WaitBuckets,
	}})
	if err != nil {
		return nil, fmt.Errorf("load sampler program: %w", err)
	}
	defer loaded.Close()
	return loaded.DetachProgram(name), nil
}

// Ring is the ring buffer that records arrive in.
func (s *Sampler) Ring() *ebpf.Map { return s.maps.Samples }

// SetLayout makes the walker walk the Haskell stacks of a process.
func (s *Sampler) SetLayout(pid uint32, l ProcessLayout) error {
	if err := s.maps.Layouts.Put(pid, l); err != nil {
		return fmt.Errorf("set layout of process %d: %w", pid, err)
	}
	return s.endEpoch()
}

// endEpoch makes the walker forget its copies of layouts and regions. It comes after
// every change of them, and numbers it.
func (s *Sampler) endEpoch() error {
	s.epoch++
	if err := s.tellWalks(unsafe.Offsetof(samplerWalk{}.Epoch), s.epoch); err != nil {
		return fmt.Errorf("tell sampler of a change: %w", err)
	}
	return nil
}

// tellWalks sets a field of what every CPU's walks work on.
func (s *Sampler) tellWalks(offset uintptr, value uint32) error {
	number := binary.NativeEndian.AppendUint32(nil, value)
	for i := range int64(s.maps.Walks.MaxEntries()) {
		if _, err := s.walks.WriteAt(number, i*walkSize+int64(offset)); err != nil {
			return err
		}
	}
	return nil
}

// Forget makes the walker know nothing of a process any more. Forgetting an
// unknown one is no error.
func (s *Sampler) Forget(pid uint32) error {
	for _, m := range []*ebpf.Map{s.maps.Layouts, s.maps.Regions} {
		if err := m.Delete(pid); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("forget process %d: %w", pid, err)
		}
	}
	return s.endEpoch()
}

// Stats are one CPU's counts since loading.
type Stats struct {
	Samples uint64 // programs run
	Nested  uint64 // samples not taken, because one was being taken on that CPU
	Thinned uint64 // samples not taken by SetKeep; their weight is in others
}

// Stats gives the counts of every possible CPU.
func (s *Sampler) Stats() ([]Stats, error) {
	stats := make([]Stats, s.config.CPUs)
	var count samplerWalkStats
	size := int64(unsafe.Sizeof(count))
	buf := make([]byte, size)
	for i := range int64(s.maps.Walks.MaxEntries()) {
		if _, err := s.walks.ReadAt(buf, i*walkSize+int64(unsafe.Offsetof(samplerWalk{}.Stats))); err != nil {
			return nil, fmt.Errorf("read sampler's counts: %w", err)
		}
		if _, err := binary.Decode(buf, binary.NativeEndian, &count); err != nil {
			return nil, fmt.Errorf("read sampler's counts: %w", err)
		}
		to := &stats[i%int64(s.config.CPUs)]
		to.Samples += count.Samples
		to.Nested += count.Nested
		to.Thinned += count.Thinned
	}
	return stats, nil
}

// Lost gives how many records of an event the ring buffer had no room for, by CPU, since
// loading.
func (s *Sampler) Lost(event int) (perCPU []uint64, err error) {
	if err := s.maps.Lost.Lookup(uint32(event), &perCPU); err != nil {
		return nil, fmt.Errorf("read what was lost: %w", err)
	}
	return perCPU, nil
}

// RunStats is how often programs ran, and for how long altogether. It is 0 unless
// the kernel's BPF statistics are enabled.
type RunStats struct{ Runs, Ns uint64 }

// RunStatsOf tells of some programs together.
func RunStatsOf(programs ...*ebpf.Program) (r RunStats, err error) {
	for _, p := range programs {
		st, err := p.Stats()
		if err != nil {
			return r, fmt.Errorf("read BPF run time: %w", err)
		}
		r.Runs += st.RunCount
		r.Ns += uint64(st.Runtime)
	}
	return r, nil
}

// ProbeStats tells of the programs at allocation probes.
func (s *Sampler) ProbeStats() (RunStats, error) { return RunStatsOf(s.probes...) }

// Close unloads everything. Programs that events still hold stay until those
// are closed.
func (s *Sampler) Close() error {
	err := s.maps.Close()
	for _, p := range slices.Concat(s.programs, s.probes, s.others) {
		err = errors.Join(err, p.Close())
	}
	return err
}
