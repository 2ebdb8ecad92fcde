package bpf

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
)

// RTSProbe says what a probe in the run-time system's code is about.
type RTSProbe = timelineRtsProbe

// What is probed; timeline.h tells at which function, with what arguments.
const (
	RTSGCStart      = timelineRtsProbeRTS_GC_START
	RTSGCEnd        = timelineRtsProbeRTS_GC_END
	RTSWorkerStart  = timelineRtsProbeRTS_WORKER_START
	RTSWorkerEnd    = timelineRtsProbeRTS_WORKER_END
	RTSRun          = timelineRtsProbeRTS_RUN
	RTSStop         = timelineRtsProbeRTS_STOP
	RTSSuspend      = timelineRtsProbeRTS_SUSPEND
	RTSResume       = timelineRtsProbeRTS_RESUME
	RTSWakeup       = timelineRtsProbeRTS_WAKEUP
	RTSCreate       = timelineRtsProbeRTS_CREATE
	RTSLabelCString = timelineRtsProbeRTS_LABEL_CSTRING
	RTSLabelArray   = timelineRtsProbeRTS_LABEL_ARRAY
)

// Groups of probes that are counted, and taken out, together.
const (
	RTSGroupGC      = timelineRtsGroupRTS_GROUP_GC
	RTSGroupThreads = timelineRtsGroupRTS_GROUP_THREADS
	RTSGroups       = int(timelineRtsGroupRTS_GROUPS)
)

// RecordRTS is the kind of records that these probes send. SampleHeader.Event is
// the RTSProbe then, Period a stop's reason; RTSGCWords follow a collection's end.
const RecordRTS = uint8(16)

// Indices of the words of a collection's end.
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
	GCFirstCapability = int(timelineRtsGcWordGC_FIRST_CAPABILITY)
)

// rtsAtCall marks the cookie of a probe that is at a call instruction.
const rtsAtCall = 1 << 8

// RTSCookie is the attach cookie of a probe: at a call of the function, or in its
// prologue.
func RTSCookie(p RTSProbe, atCall bool) uint64 {
	if atCall {
		return uint64(p) | rtsAtCall
	}
	return uint64(p)
}

// RTSGlobals says where the run-time system of a process keeps what the probes read.
type RTSGlobals = timelineRtsGlobals

// Timeline is the loaded program of the probes in the run-time system's code.
// Its records arrive in the sampler's ring buffer.
type Timeline struct {
	maps    timelineMaps
	program *ebpf.Program
}

// LoadTimeline loads the program, to be attached one probe at a time or, if multi is
// set, by links of many. It looks at the processes that the sampler knows.
func (s *Sampler) LoadTimeline(multi bool) (*Timeline, error) {
	spec, err := loadTimeline()
	if err != nil {
		return nil, fmt.Errorf("read embedded timeline program: %w", err)
	}
	spec.Maps[timelineMapSamples].MaxEntries = s.maps.Samples.MaxEntries()
	spec.Maps[timelineMapLayouts].MaxEntries = s.maps.Layouts.MaxEntries()
	spec.Maps[timelineMapThreads].MaxEntries = s.maps.Threads.MaxEntries()
	spec.Maps[timelineMapRtsSpent].MaxEntries = uint32(os.Getpagesize())
	if ns := s.config.PIDNamespace; ns != nil {
		err := errors.Join(spec.Variables[timelineVarPidnsDev].Set(ns.Dev), spec.Variables[timelineVarPidnsIno].Set(ns.Ino))
		if err != nil {
			return nil, fmt.Errorf("configure timeline program: %w", err)
		}
	}
	name, other := timelineProgOnRtsProbe, timelineProgOnRtsProbes
	if multi {
		name, other = other, name
	}
	delete(spec.Programs, other)
	loaded, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: s.types, MapReplacements: map[string]*ebpf.Map{
		timelineMapSamples: s.maps.Samples,
		timelineMapLayouts: s.maps.Layouts,
		timelineMapThreads: s.maps.Threads,
	}})
	if err != nil {
		return nil, fmt.Errorf("load timeline program: %w", err)
	}
	defer loaded.Close()
	return &Timeline{
		maps: timelineMaps{
			Rts: loaded.DetachMap(timelineMapRts), RtsCounted: loaded.DetachMap(timelineMapRtsCounted),
			RtsLimits: loaded.DetachMap(timelineMapRtsLimits), RtsSpent: loaded.DetachMap(timelineMapRtsSpent),
		},
		program: loaded.DetachProgram(name),
	}, nil
}

// Program is what probes run. The Timeline owns it.
func (t *Timeline) Program() *ebpf.Program { return t.program }

// SetGlobals tells of a process's run-time system; its probes do nothing before.
func (t *Timeline) SetGlobals(pid uint32, g RTSGlobals) error {
	if err := t.maps.Rts.Put(pid, g); err != nil {
		return fmt.Errorf("set globals of process %d: %w", pid, err)
	}
	return nil
}

// Forget makes the probes know nothing of a process any more.
func (t *Timeline) Forget(pid uint32) error {
	if err := t.maps.Rts.Delete(pid); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("forget globals of process %d: %w", pid, err)
	}
	return nil
}

// RTSCounts are counts of one group of probes since loading.
type RTSCounts struct {
	Hits    uint64
	Records uint64 // sent
	Dropped uint64 // not sent: too many in a moment, or the ring buffer was full
}

// Counts gives a group's counts, of all CPUs.
func (t *Timeline) Counts(group int) (RTSCounts, error) {
	var perCPU []timelineRtsCounts
	if err := t.maps.RtsCounted.Lookup(uint32(group), &perCPU); err != nil {
		return RTSCounts{}, fmt.Errorf("read the timeline's counts: %w", err)
	}
	var sum RTSCounts
	for _, c := range perCPU {
		sum.Hits += c.Hits
		sum.Records += c.Records
		sum.Dropped += c.Dropped
	}
	return sum, nil
}

// SetLimit has Spent told when a group has been hit so many times since loading. Until it
// is set Spent is told all the time.
func (t *Timeline) SetLimit(group int, hits uint64) error {
	if err := t.maps.RtsLimits.Put(uint32(group), hits); err != nil {
		return fmt.Errorf("limit the timeline's hits: %w", err)
	}
	return nil
}

// Spent is the ring buffer in which it is told, and told again until there is another
// limit, that a group has reached its limit. Unlike that of samples it wakes its reader.
func (t *Timeline) Spent() *ebpf.Map { return t.maps.RtsSpent }

// RunStats gives how often the program ran and for how long altogether, in ns: 0
// unless the kernel's BPF statistics are enabled.
func (t *Timeline) RunStats() (runs, ns uint64, err error) {
	st, err := t.program.Stats()
	if err != nil {
		return 0, 0, fmt.Errorf("read BPF run time: %w", err)
	}
	return st.RunCount, uint64(st.Runtime), nil
}

// Close unloads everything.
func (t *Timeline) Close() error {
	return errors.Join(t.program.Close(), t.maps.Close())
}
