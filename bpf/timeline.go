package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
)

// RTSProbe is what a probe in the run-time system's code observes.
type RTSProbe = timelineRtsProbe

// Kinds of probes; timeline.h has the probed functions and their arguments.
const (
	RTSGCStart      = timelineRtsProbeRTS_GC_START
	RTSGCEnd        = timelineRtsProbeRTS_GC_END
	RTSWorkerStart  = timelineRtsProbeRTS_WORKER_START
	RTSWorkerDone   = timelineRtsProbeRTS_WORKER_DONE
	RTSWorkerEnd    = timelineRtsProbeRTS_WORKER_END
	RTSFlushStart   = timelineRtsProbeRTS_FLUSH_START
	RTSFlushEnd     = timelineRtsProbeRTS_FLUSH_END
	RTSRun          = timelineRtsProbeRTS_RUN
	RTSStop         = timelineRtsProbeRTS_STOP
	RTSSuspend      = timelineRtsProbeRTS_SUSPEND
	RTSResume       = timelineRtsProbeRTS_RESUME
	RTSWakeup       = timelineRtsProbeRTS_WAKEUP
	RTSCreate       = timelineRtsProbeRTS_CREATE
	RTSLabelCString = timelineRtsProbeRTS_LABEL_CSTRING
	RTSLabelArray   = timelineRtsProbeRTS_LABEL_ARRAY
	RTSSparks       = timelineRtsProbeRTS_SPARKS
)

// Groups of probes; each is counted and detached as one.
const (
	RTSGroupGC      = timelineRtsGroupRTS_GROUP_GC
	RTSGroupThreads = timelineRtsGroupRTS_GROUP_THREADS
	RTSGroups       = int(timelineRtsGroupRTS_GROUPS)
)

// RecordRTS is the kind of the records that these probes send. Its SampleHeader.Event is an
// RTSProbe, Period is the reason of a stop, and Total counts the group's records that the CPU
// has dropped before. After a GC's end the words of a GC follow.
const RecordRTS = uint8(16)

// Indices of the words that follow the record of a GC's end.
const (
	GCLive            = int(timelineRtsGcWordGC_LIVE)
	GCCopied          = int(timelineRtsGcWordGC_COPIED)
	GCSlop            = int(timelineRtsGcWordGC_SLOP)
	GCGeneration      = int(timelineRtsGcWordGC_GENERATION)
	GCThreads         = int(timelineRtsGcWordGC_THREADS)
	GCMaxCopied       = int(timelineRtsGcWordGC_MAX_COPIED)
	GCBalanced        = int(timelineRtsGcWordGC_BALANCED)
	GCMBlocks         = int(timelineRtsGcWordGC_MBLOCKS)
	GCBlocks          = int(timelineRtsGcWordGC_BLOCKS)
	GCCount           = int(timelineRtsGcWordGC_COUNT)
	GCRequested       = int(timelineRtsGcWordGC_REQUESTED)
	GCStarted         = int(timelineRtsGcWordGC_STARTED)
	GCFirstCapability = int(timelineRtsGcWordGC_FIRST_CAPABILITY)
)

// rtsAtCall is set in the cookie of a probe that is at a call instruction. From rtsSlotShift on it
// has the slot.
const (
	rtsAtCall    = 1 << 8
	rtsSlotShift = 16
)

// RTSCookie returns the attach cookie of a probe, which is either at a call of the function
// or in the function's prologue, in a process whose counts have a slot.
func RTSCookie(p RTSProbe, atCall bool, slot int) uint64 {
	cookie := uint64(p) | uint64(slot)<<rtsSlotShift
	if atCall {
		cookie |= rtsAtCall
	}
	return cookie
}

// RTSGlobals has the addresses and offsets of the run-time system's data that the probes
// read in a process.
type RTSGlobals = timelineRtsGlobals

// RTSProgram is the loaded program of the probes in the run-time system's code. Its records
// go to the sampler's ring buffer.
type RTSProgram struct {
	maps    timelineMaps
	program *ebpf.Program
	slots   int
}

// LoadRTSProgram loads the program, to be attached to one probe at a time or, if multi is
// set, by links of many probes. It uses the layouts that the sampler has of processes, of which
// slots can have probes at a time.
func (s *Sampler) LoadRTSProgram(multi bool, slots int) (*RTSProgram, error) {
	spec, err := loadTimeline()
	if err != nil {
		return nil, fmt.Errorf("read embedded timeline program: %w", err)
	}
	spec.Maps[timelineMapSamples].MaxEntries = s.maps.Samples.MaxEntries()
	spec.Maps[timelineMapLayouts].MaxEntries = s.maps.Layouts.MaxEntries()
	spec.Maps[timelineMapThreads].MaxEntries = s.maps.Threads.MaxEntries()
	spec.Maps[timelineMapRtsSpent].MaxEntries = uint32(os.Getpagesize())
	for _, name := range []string{timelineMapRtsCounted, timelineMapRtsHits, timelineMapRtsLimits} {
		spec.Maps[name].MaxEntries = uint32(slots * RTSGroups)
	}
	if ns := s.config.PIDNamespace; ns != nil {
		if err := spec.Variables[timelineVarPidnsIno].Set(ns.Ino); err != nil {
			return nil, fmt.Errorf("configure timeline program: %w", err)
		}
	}
	name, other := timelineProgOnRtsProbe, timelineProgOnRtsProbes
	if multi {
		name, other = other, name
	}
	delete(spec.Programs, other)
	loaded, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: kernelTypes(), MapReplacements: map[string]*ebpf.Map{
		timelineMapSamples: s.maps.Samples,
		timelineMapLayouts: s.maps.Layouts,
		timelineMapThreads: s.maps.Threads,
	}})
	if err != nil {
		return nil, fmt.Errorf("load timeline program: %w", err)
	}
	defer loaded.Close()
	return &RTSProgram{
		maps: timelineMaps{
			Rts: loaded.DetachMap(timelineMapRts), RtsCounted: loaded.DetachMap(timelineMapRtsCounted),
			RtsHits: loaded.DetachMap(timelineMapRtsHits), RtsLimits: loaded.DetachMap(timelineMapRtsLimits), RtsSpent: loaded.DetachMap(timelineMapRtsSpent),
		},
		program: loaded.DetachProgram(name),
		slots:   slots,
	}, nil
}

// Slots is how many processes can have probes at a time.
func (t *RTSProgram) Slots() int { return t.slots }

// Program is the program to attach to the probes. The RTSProgram owns it.
func (t *RTSProgram) Program() *ebpf.Program { return t.program }

// SetGlobals sets what the probes need to know about a process's run-time system. They do
// nothing before.
func (t *RTSProgram) SetGlobals(pid uint32, g RTSGlobals) error {
	if err := t.maps.Rts.Put(pid, g); err != nil {
		return fmt.Errorf("set globals of process %d: %w", pid, err)
	}
	return nil
}

// Forget deletes what the probes know about a process.
func (t *RTSProgram) Forget(pid uint32) error {
	if err := t.maps.Rts.Delete(pid); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("forget globals of process %d: %w", pid, err)
	}
	return nil
}

// RTSCounts are the counts of one group of probes of a process since its slot was cleared.
type RTSCounts struct {
	Hits    uint64
	Records uint64 // sent
	Dropped uint64 // not sent: rate limit reached, or ring buffer full
	// DroppedOn are those of each CPU.
	DroppedOn []uint64
}

// Clear sets the counts of a slot to 0, of a process that has no probes yet.
func (t *RTSProgram) Clear(slot int) error {
	for group := range RTSGroups {
		index := rtsIndex(slot, group)
		err := t.maps.RtsCounted.Put(index, make([]timelineRtsCounts, ebpf.MustPossibleCPU()))
		for _, m := range []*ebpf.Map{t.maps.RtsHits, t.maps.RtsLimits} {
			err = errors.Join(err, m.Put(index, uint64(0)))
		}
		if err != nil {
			return fmt.Errorf("clear the counts of RTS probes: %w", err)
		}
	}
	return nil
}

// rtsIndex is the index of a group of a slot, in counts and in what Spent gets.
func rtsIndex(slot, group int) uint32 { return uint32(slot*RTSGroups + group) }

// RTSSlotOf is the slot of a record of Spent.
func RTSSlotOf(record []byte) (slot int, ok bool) {
	if len(record) < 4 {
		return 0, false
	}
	return int(binary.NativeEndian.Uint32(record)) / RTSGroups, true
}

// Counts returns the counts of a slot's group, summed over all CPUs.
func (t *RTSProgram) Counts(slot, group int) (RTSCounts, error) {
	var perCPU []timelineRtsCounts
	if err := t.maps.RtsCounted.Lookup(rtsIndex(slot, group), &perCPU); err != nil {
		return RTSCounts{}, fmt.Errorf("read the counts of RTS probes: %w", err)
	}
	var sum RTSCounts
	for _, c := range perCPU {
		sum.Hits += c.Hits
		sum.Records += c.Records
		sum.Dropped += c.Dropped
		sum.DroppedOn = append(sum.DroppedOn, c.Dropped)
	}
	return sum, nil
}

// SetLimit sets the number of hits of a slot's group at which Spent gets a record. Until it is
// set every step of the count sends one.
func (t *RTSProgram) SetLimit(slot, group int, hits uint64) error {
	if err := t.maps.RtsLimits.Put(rtsIndex(slot, group), hits); err != nil {
		return fmt.Errorf("set the limit of RTS probes: %w", err)
	}
	return nil
}

// Spent is the ring buffer that gets a record of a group (RTSSlotOf) when the group reaches its limit, and
// again with every further step of the count until the limit is raised. Unlike the ring
// buffer of samples it wakes its reader.
func (t *RTSProgram) Spent() *ebpf.Map { return t.maps.RtsSpent }

// RunStats returns how often the program ran and its total run time in ns: 0 unless the
// kernel's BPF statistics are enabled.
func (t *RTSProgram) RunStats() (runs, ns uint64, err error) {
	st, err := t.program.Stats()
	if err != nil {
		return 0, 0, fmt.Errorf("read BPF run time: %w", err)
	}
	return st.RunCount, uint64(st.Runtime), nil
}

// Close unloads everything.
func (t *RTSProgram) Close() error {
	return errors.Join(t.program.Close(), t.maps.Close())
}
