package bpf

import (
	"errors"
	"fmt"
	"os"
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
	// RecordWait is a sample of a thread that goes to sleep. SampleHeader.Total is its CPU time, Period the time of its waits since the last one
	// that was sent, in ns. RecordWake is sent when it runs
	// again; SampleHeader.Period is the time that it slept, in ns.
	RecordWait = uint8(samplerRecordTypeRECORD_WAIT)
	RecordWake = uint8(samplerRecordTypeRECORD_WAKE)
	// RecordThreadEnds and RecordThreadEnded are sent when a thread of a target ends, and when
	// nothing of it is left. SampleHeader.Period is its CPU time, ns, complete in the second.
	RecordThreadEnds  = uint8(samplerRecordTypeRECORD_THREAD_ENDS)
	RecordThreadEnded = uint8(samplerRecordTypeRECORD_THREAD_ENDED)
	// RecordEvaluating has the thunks that the thread of the sample before it evaluates, in place of
	// frames. SampleHeader.Total is the number of collections so far.
	RecordEvaluating = uint8(samplerRecordTypeRECORD_EVALUATING)
)

// Where the Task of an OS thread is found, in ProcessLayout.TaskPlace.
const (
	// TaskAt: at TaskAt, of the process's first thread.
	TaskAt = uint16(samplerTaskPlaceTASK_AT)
	// TaskOffset: TaskAt from the thread pointer.
	TaskOffset = uint16(samplerTaskPlaceTASK_OFFSET)
	// TaskModule: TaskAt in the thread-local variables of the library whose number is at TaskModule.
	TaskModule = uint16(samplerTaskPlaceTASK_MODULE)
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
	// ManyUsers is set where programs of several users are walked, of which one's may have half of that room.
	ManyUsers bool
	// PIDNamespace is set if the caller is not in the initial pid namespace. Process ids in
	// records are then those of this namespace.
	PIDNamespace *PIDNamespace
}

// MaxProcesses limits the processes that the walker knows at a time, as the sizes of its maps do.
const MaxProcesses = 1024

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
	maps     samplerMaps
	unwind   *unwindTables
	loaded   sync.Mutex      // guards what follows while programs are loaded, which may be side by side
	walks    []*walkMemory   // one per CPU for events, one for probes, one for thread switches; then those of ticks
	tick     *walkMemory     // of walks; nil if ticks are not sampled
	programs []*ebpf.Program // of events
	probes   []*ebpf.Program // of allocation
	others   []*ebpf.Program
	// transactions says which events note transactions; nil if none does.
	transactions func(event int) bool
	thunks       thunkEvent
	epoch        uint32 // counts the changes of layouts and regions
}

// kernelTypes are the kernel's types, once. Reading them takes longer than loading a small program.
var kernelTypes = sync.OnceValue(func() *btf.Cache {
	types := btf.NewCache()
	_, _ = types.Kernel() // who needs them gets the error
	return types
})

// samplerSpec is the walker's specification, of which Load takes a copy.
var samplerSpec = sync.OnceValues(loadSampler)

// Prepare begins with what Load needs, so that it is done beside what comes before.
func Prepare() {
	go kernelTypes()
	go func() { _, _ = samplerSpec() }() // Load gets the error
}

// Load creates the maps. It needs CAP_BPF and CAP_PERFMON, or root.
func Load(c Config) (*Sampler, error) {
	if c.MaxFrames < 1 || c.MaxFrames > MaxLeafFrames {
		return nil, fmt.Errorf("load sampler: frame budget %d is not in 1..%d", c.MaxFrames, MaxLeafFrames)
	}
	if jitIsOff() {
		return nil, ErrNoJIT
	}
	Prepare()
	spec, err := samplerSpec()
	if err != nil {
		return nil, fmt.Errorf("read embedded sampler: %w", err)
	}
	spec = spec.Copy()
	spec.Maps[samplerMapSamples].MaxEntries = uint32(c.RingBytes)
	spec.Maps[samplerMapWalks].MaxEntries = uint32(3 * c.CPUs)
	spec.Maps[samplerMapTransactionSpent].MaxEntries = uint32(os.Getpagesize())
	rows, buckets := uint32(c.UnwindRows), uint32(c.UnwindRows/rowsPerBucket+2)
	spec.Maps[samplerMapUnwindRows].MaxEntries = chunksOf(rows)
	perRule := rowsPerRule
	if c.ManyUsers { // one of them has half of the rows, and half of the rules for all of them
		perRule *= 2
	}
	spec.Maps[samplerMapUnwindRules].MaxEntries = uint32(c.UnwindRows/perRule + 1)
	spec.Maps[samplerMapUnwindBuckets].MaxEntries = chunksOf(buckets)
	s := &Sampler{config: c, spec: spec}
	// Only maps are loaded here; programs are loaded one per event.
	if err := spec.LoadAndAssign(&s.maps, nil); err != nil {
		return nil, fmt.Errorf("create BPF maps: %w", err)
	}
	walks, err := s.maps.Walks.Memory()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map walks: %w", err), s.maps.Close())
	}
	s.walks = []*walkMemory{{walks, int64(3 * c.CPUs)}}
	if s.unwind, err = newUnwindTables(&s.maps, spec, rows, buckets); err != nil {
		return nil, errors.Join(err, s.maps.Close())
	}
	if c.ManyUsers {
		s.unwind.divide()
	}
	if err := errors.Join(s.walks[0].number(), s.SetKeep(1)); err != nil {
		return nil, errors.Join(err, s.maps.Close())
	}
	return s, nil
}

// EventProgram loads the program that runs at each overflow of the event with that index.
// The sampler owns it.
func (s *Sampler) EventProgram(event int) (*ebpf.Program, error) {
	return s.load(samplerProgOnEvent, event, &s.programs, nil)
}

// SwitchProgram loads the program that runs when the kernel switches threads. It samples
// waits as the event with that index. The sampler owns it.
func (s *Sampler) SwitchProgram(event int) (*ebpf.Program, error) {
	return s.load(samplerProgOnSwitch, event, &s.programs, nil)
}

// Asleep returns the threads, by their ids in records, that wait now.
func (s *Sampler) Asleep() (map[uint32]bool, error) {
	asleep := map[uint32]bool{}
	var task uint32
	var wait samplerWait
	waits := s.maps.Waits.Iterate()
	for waits.Next(&task, &wait) {
		if wait.Since != 0 {
			asleep[wait.Tid] = true
		}
	}
	if err := waits.Err(); err != nil {
		return nil, fmt.Errorf("read which threads wait: %w", err)
	}
	return asleep, nil
}

// Unsent are waits of a thread that were seen, but whose stacks were not sent, ns. Since is when one began that had not ended, 0 if there is none, and
// Ran the thread's CPU time then.
type Unsent struct {
	PID, TID       uint32
	Ns, Since, Ran uint64
}

// TakeUnsent returns the waits whose stacks were not sent, and forgets them. The program of SwitchProgram is not attached meanwhile.
func (s *Sampler) TakeUnsent() (all []Unsent, err error) {
	var task uint32
	var wait samplerWait
	changed := map[uint32]samplerWait{}
	waits := s.maps.Waits.Iterate()
	for waits.Next(&task, &wait) {
		u := Unsent{PID: wait.Pid, TID: wait.Tid, Ns: wait.Unsent}
		if wait.Sent == 0 {
			u.Since, u.Ran = wait.Since, wait.Ran
		}
		if u.Ns > 0 || u.Since > 0 {
			all = append(all, u)
		}
		if u.Ns > 0 {
			wait.Unsent = 0
			changed[task] = wait
		}
	}
	if err := waits.Err(); err != nil {
		return nil, fmt.Errorf("read waits without stacks: %w", err)
	}
	for task, wait := range changed {
		if err := s.maps.Waits.Put(task, wait); err != nil {
			return nil, fmt.Errorf("forget waits without stacks: %w", err)
		}
	}
	return all, nil
}

// ShutdownProgram loads the program that reads ticky counters when a run-time system shuts
// down. The sampler owns it.
func (s *Sampler) ShutdownProgram() (*ebpf.Program, error) {
	return s.load(samplerProgOnShutdown, 0, &s.others, nil)
}

// adapt changes what a program is loaded of: its specification, and the maps that it uses.
type adapt func(spec *ebpf.CollectionSpec, maps map[string]*ebpf.Map) error

// load loads a program and appends it to one of the lists that the sampler owns.
func (s *Sampler) load(name string, event int, list *[]*ebpf.Program, adapt adapt) (*ebpf.Program, error) {
	p, err := s.program(name, event, adapt)
	if err == nil {
		s.loaded.Lock()
		*list = append(*list, p)
		s.loaded.Unlock()
	}
	return p, err
}

func (s *Sampler) program(name string, event int, adapt adapt) (*ebpf.Program, error) {
	one := *s.spec
	one.Programs = map[string]*ebpf.ProgramSpec{name: s.spec.Programs[name]}
	spec := one.Copy()
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
	if s.transactions != nil && s.transactions(event) {
		err = errors.Join(err, set(samplerVarWithTransactions, uint8(1)))
	}
	if s.thunks.of != nil && s.thunks.of(event) {
		err = errors.Join(err, set(samplerVarThunkEvent, uint16(s.thunks.event)))
	}
	if ns := s.config.PIDNamespace; ns != nil {
		err = errors.Join(err, set(samplerVarPidnsIno, ns.Ino))
	}
	maps := map[string]*ebpf.Map{
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
		samplerMapBehind:        s.maps.Behind,
		samplerMapAttempts:      s.maps.Attempts,

		samplerMapConstructionSites:   s.maps.ConstructionSites,
		samplerMapConstructionControl: s.maps.ConstructionControl,
		samplerMapTransactionSpent:    s.maps.TransactionSpent,
		samplerMapTransactionControl:  s.maps.TransactionControl,
		samplerMapTransactionAccounts: s.maps.TransactionAccounts,
	}
	if adapt != nil {
		err = errors.Join(err, adapt(spec, maps))
	}
	if err != nil {
		return nil, fmt.Errorf("configure sampler: %w", err)
	}
	loaded, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: kernelTypes(), MapReplacements: maps})
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

// setInWalks sets a field of every struct walk.
func (s *Sampler) setInWalks(offset uintptr, value uint32) error {
	for _, m := range s.walks {
		if err := m.set(offset, value); err != nil {
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
	for _, m := range s.walks {
		if err := m.addStats(stats); err != nil {
			return nil, fmt.Errorf("read sampler's counts: %w", err)
		}
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
