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

// SampleHeader is the start of every record in the ring buffer. In a sample, FrameCount
// frames of eight bytes follow it.
type SampleHeader = samplerSampleHeader

// CCSRecord describes a cost-centre stack. It follows the header in place of frames.
type CCSRecord = samplerCcsRecord

// TickyRecord is a counter of a -ticky program. Several follow a header in place of frames.
type TickyRecord = samplerTickyRecord

// CCSWhy is the result of reading a cost-centre stack.
type CCSWhy = samplerCcsWhy

// Results of reading a cost-centre stack.
const (
	CCSWhole       = samplerCcsWhyCCS_WHOLE
	CCSUnreadable  = samplerCcsWhyCCS_UNREADABLE
	CCSImplausible = samplerCcsWhyCCS_IMPLAUSIBLE
	CCSTooDeep     = samplerCcsWhyCCS_TOO_DEEP
)

// ProcessLayout is what the walker needs to know about a process.
type ProcessLayout = samplerProcessLayout

// Kinds of records, in SampleHeader.Record.
const (
	RecordSample = uint8(samplerRecordTypeRECORD_SAMPLE)
	RecordLabel  = uint8(samplerRecordTypeRECORD_LABEL)
	RecordCCS    = uint8(samplerRecordTypeRECORD_CCS)
	RecordTicky  = uint8(samplerRecordTypeRECORD_TICKY)
	// RecordAllocated is sent when a process ends. SampleHeader.Total is what it has
	// allocated, in words.
	RecordAllocated = uint8(samplerRecordTypeRECORD_ALLOCATED)
	// RecordWait is a sample of a thread that goes to sleep. RecordWake is sent when it runs
	// again; SampleHeader.Period is the time that it slept, in ns.
	RecordWait = uint8(samplerRecordTypeRECORD_WAIT)
	RecordWake = uint8(samplerRecordTypeRECORD_WAKE)
	// RecordThreadEnds and RecordThreadEnded are sent when a thread of a target ends, and when
	// nothing of it is left. SampleHeader.Period is its CPU time, ns, complete in the second.
	RecordThreadEnds  = uint8(samplerRecordTypeRECORD_THREAD_ENDS)
	RecordThreadEnded = uint8(samplerRecordTypeRECORD_THREAD_ENDED)
)

// Limits and encodings in C's record.h that BTF does not carry. A test compares them with
// the headers.
const (
	MaxFrames        = 512
	MaxLeafFrames    = MaxFrames - 64 - 1
	FrameKindShift   = 56
	FrameAddressMask = 1<<FrameKindShift - 1
)

// Config is what is fixed when the programs are loaded.
type Config struct {
	// MaxFrames limits the frames recorded of a stack's leaf part. It is at most
	// MaxLeafFrames.
	MaxFrames int
	// KernelStacks adds the kernel's frames to samples taken in the kernel.
	KernelStacks bool
	// CPUs is the number of possible CPUs.
	CPUs int
	// RingBytes is the size of the ring buffer, a power of two.
	RingBytes int
	// UnwindRows is the room for call frame information: the number of rows of all modules
	// together.
	UnwindRows int
	// PIDNamespace is set if the caller is not in the initial pid namespace. Process ids in
	// records are then those of this namespace.
	PIDNamespace *PIDNamespace
}

// Cautious estimates of how many rows share a rule (some hundreds in real programs) and how
// many are in a bucket (about ten, but code without call frame information has buckets too).
const (
	rowsPerRule   = 32
	rowsPerBucket = 4
)

// Sampler is the loaded walker: its maps, and one program for each event that it samples.
type Sampler struct {
	config   Config
	spec     *ebpf.CollectionSpec
	types    *btf.Cache // the kernel's types; reading them takes longer than loading a small program
	maps     samplerMaps
	unwind   *unwindTables
	walks    *ebpf.Memory    // one per CPU for events, one for probes, one for thread switches
	loaded   sync.Mutex      // guards the lists of programs: programs may be loaded concurrently
	programs []*ebpf.Program // of events
	probes   []*ebpf.Program // of allocation
	others   []*ebpf.Program
	epoch    uint32 // counts the changes of layouts and regions
}

// walkSize is the size of a CPU's struct walk.
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
	// Only maps are loaded here; programs are loaded one per event.
	if err := spec.LoadAndAssign(&s.maps, nil); err != nil {
		return nil, fmt.Errorf("create BPF maps: %w", err)
	}
	if s.walks, err = s.maps.Walks.Memory(); err != nil {
		return nil, errors.Join(fmt.Errorf("map walks: %w", err), s.maps.Close())
	}
	if s.unwind, err = newUnwindTables(&s.maps); err != nil {
		return nil, errors.Join(err, s.maps.Close())
	}
	if err := errors.Join(s.numberWalks(), s.SetKeep(1)); err != nil {
		return nil, errors.Join(err, s.maps.Close())
	}
	return s, nil
}

// EventProgram loads the program that runs at each overflow of the event with that index.
// The sampler owns it.
func (s *Sampler) EventProgram(event int) (*ebpf.Program, error) {
	return s.load(samplerProgOnEvent, event, false, &s.programs)
}

// SwitchProgram loads the program that runs when the kernel switches threads. It samples
// waits as the event with that index. The sampler owns it.
func (s *Sampler) SwitchProgram(event int) (*ebpf.Program, error) {
	return s.load(samplerProgOnSwitch, event, false, &s.programs)
}

// ShutdownProgram loads the program that reads ticky counters when a run-time system shuts
// down. The sampler owns it.
func (s *Sampler) ShutdownProgram() (*ebpf.Program, error) {
	return s.load(samplerProgOnShutdown, 0, false, &s.others)
}

// load loads a program and appends it to one of the lists that the sampler owns. If multi is
// set it is made for links of many probes.
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
		err = errors.Join(err, set(samplerVarPidnsIno, ns.Ino))
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
		samplerMapSentCcs:       s.maps.SentCcs,
		samplerMapWaits:         s.maps.Waits,
		samplerMapWaitRates:     s.maps.WaitRates,
		samplerMapTargets:       s.maps.Targets,
		samplerMapOthers:        s.maps.Others,
		samplerMapEndedThreads:  s.maps.EndedThreads,
	}})
	if err != nil {
		return nil, fmt.Errorf("load sampler program: %w", err)
	}
	defer loaded.Close()
	return loaded.DetachProgram(name), nil
}

// Ring is the ring buffer of the records.
func (s *Sampler) Ring() *ebpf.Map { return s.maps.Samples }

// SetLayout makes the walker walk the Haskell stacks of a process, with this layout.
func (s *Sampler) SetLayout(pid uint32, l ProcessLayout) error {
	if err := s.maps.Layouts.Put(pid, l); err != nil {
		return fmt.Errorf("set layout of process %d: %w", pid, err)
	}
	return s.endEpoch()
}

// endEpoch makes the walker drop its copies of layouts and regions. It is called after every
// change of them.
func (s *Sampler) endEpoch() error {
	s.epoch++
	if err := s.setInWalks(unsafe.Offsetof(samplerWalk{}.Epoch), s.epoch); err != nil {
		return fmt.Errorf("invalidate the sampler's copies of layouts: %w", err)
	}
	return nil
}

// numberWalks gives every walk its index.
func (s *Sampler) numberWalks() error {
	for i := range s.maps.Walks.MaxEntries() {
		number := binary.NativeEndian.AppendUint32(nil, i)
		if _, err := s.walks.WriteAt(number, int64(i)*walkSize+int64(unsafe.Offsetof(samplerWalk{}.Slot))); err != nil {
			return fmt.Errorf("number the walks: %w", err)
		}
	}
	return nil
}

// setInWalks sets a field of every CPU's struct walk.
func (s *Sampler) setInWalks(offset uintptr, value uint32) error {
	number := binary.NativeEndian.AppendUint32(nil, value)
	for i := range int64(s.maps.Walks.MaxEntries()) {
		if _, err := s.walks.WriteAt(number, i*walkSize+int64(offset)); err != nil {
			return err
		}
	}
	return nil
}

// Forget deletes what the walker knows about a process. It is no error if that is nothing.
func (s *Sampler) Forget(pid uint32) error {
	for _, m := range []*ebpf.Map{s.maps.Layouts, s.maps.Regions} {
		if err := m.Delete(pid); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("forget process %d: %w", pid, err)
		}
	}
	return s.endEpoch()
}

// Stats are the counts of one CPU since loading.
type Stats struct {
	Samples uint64 // runs of the programs
	Nested  uint64 // samples skipped because the CPU was taking another one
	Thinned uint64 // samples skipped due to SetKeep; other samples carry their weight
	Waits   uint64 // waits that began
	WaitNs  uint64 // time in BPF where they did
}

// Stats returns the counts of every possible CPU.
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
		to.Waits += count.Waits
		to.WaitNs += count.WaitNs
	}
	return stats, nil
}

// Lost returns how many records of an event did not fit into the ring buffer since loading,
// by CPU.
func (s *Sampler) Lost(event int) (perCPU []uint64, err error) {
	if err := s.maps.Lost.Lookup(uint32(event), &perCPU); err != nil {
		return nil, fmt.Errorf("read counts of lost records: %w", err)
	}
	return perCPU, nil
}

// RunStats is how often programs ran, and their total run time. It is 0 unless the kernel's
// BPF statistics are enabled.
type RunStats struct{ Runs, Ns uint64 }

// RunStatsOf returns the sum of the programs' statistics.
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

// ProbeStats returns the statistics of the programs at allocation probes.
func (s *Sampler) ProbeStats() (RunStats, error) { return RunStatsOf(s.probes...) }

// Close unloads everything. A program that is still attached to an event stays loaded until
// that event is closed.
func (s *Sampler) Close() error {
	err := s.maps.Close()
	for _, p := range slices.Concat(s.programs, s.probes, s.others) {
		err = errors.Join(err, p.Close())
	}
	return err
}
