package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// RecordBlock is the kind of record that has a block of a process's nursery, as it was when a
// collection began. Four words come before the block's: see BlockStart.
const RecordBlock = uint8(17)

// Indices of the words that follow the header of a RecordBlock. Its SampleHeader.Capability is
// whose nursery it was, and Total the words that this had allocated.
const (
	BlockStart        = 0 // the block's address
	BlockUsed         = 1 // bytes that are allocated in it; more than are there, for a group of blocks
	BlockNursery      = 2 // blocks of the nursery; the block was as likely chosen as any place in it
	BlockCapabilities = 3 // of which one was chosen
	BlockFirst        = 4 // the block's first word
	BlockWords        = 512
)

// NurseryLayout is what the probe at collections needs to know about a process.
type NurseryLayout = nurseryNurseryLayout

// NurseryProgram is the loaded program that copies blocks of nurseries. Its records go to the
// sampler's ring buffer.
type NurseryProgram struct {
	maps    nurseryMaps
	program *ebpf.Program
}

// LoadNurseryProgram loads the program, to be attached where collections begin; if multi is set,
// by links of many probes.
func (s *Sampler) LoadNurseryProgram(multi bool) (*NurseryProgram, error) {
	spec, err := loadNursery()
	if err != nil {
		return nil, fmt.Errorf("read embedded nursery program: %w", err)
	}
	spec.Maps[nurseryMapSamples].MaxEntries = s.maps.Samples.MaxEntries()
	if ns := s.config.PIDNamespace; ns != nil {
		if err := spec.Variables[nurseryVarPidnsIno].Set(ns.Ino); err != nil {
			return nil, fmt.Errorf("configure nursery program: %w", err)
		}
	}
	if multi {
		spec.Programs[nurseryProgOnCollection].AttachType = ebpf.AttachTraceUprobeMulti
	}
	loaded, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: kernelTypes(), MapReplacements: map[string]*ebpf.Map{
		nurseryMapSamples: s.maps.Samples,
	}})
	if err != nil {
		return nil, fmt.Errorf("load nursery program: %w", err)
	}
	defer loaded.Close()
	return &NurseryProgram{
		maps:    nurseryMaps{Nurseries: loaded.DetachMap(nurseryMapNurseries), NurseryCounted: loaded.DetachMap(nurseryMapNurseryCounted)},
		program: loaded.DetachProgram(nurseryProgOnCollection),
	}, nil
}

// Program is the program to attach to the probes. The NurseryProgram owns it.
func (n *NurseryProgram) Program() *ebpf.Program { return n.program }

// SetLayout has blocks copied of a process, with this layout.
func (n *NurseryProgram) SetLayout(pid uint32, l NurseryLayout) error {
	if err := n.maps.Nurseries.Put(pid, l); err != nil {
		return fmt.Errorf("set the nursery's layout of process %d: %w", pid, err)
	}
	return nil
}

// Forget has no more blocks copied of a process.
func (n *NurseryProgram) Forget(pid uint32) error {
	if err := n.maps.Nurseries.Delete(pid); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("forget the nursery of process %d: %w", pid, err)
	}
	return nil
}

// NurseryCounts are the program's counts since loading.
type NurseryCounts struct {
	Hits    uint64 // collections
	Chosen  uint64 // of those, at which a block was to be copied
	Missed  uint64 // of those, with none at the chosen place: the nursery was not full
	Dropped uint64 // of those, whose record did not fit into the ring buffer
	Failed  uint64 // of those, whose nursery could not be read
}

// Counts returns the counts, summed over all CPUs.
func (n *NurseryProgram) Counts() (sum NurseryCounts, err error) {
	var perCPU []nurseryNurseryCounts
	if err := n.maps.NurseryCounted.Lookup(uint32(0), &perCPU); err != nil {
		return sum, fmt.Errorf("read the counts of copied blocks: %w", err)
	}
	for _, c := range perCPU {
		sum.Hits += c.Hits
		sum.Chosen += c.Chosen
		sum.Missed += c.Missed
		sum.Dropped += c.Dropped
		sum.Failed += c.Failed
	}
	return sum, nil
}

// RunStats is what the program has cost in BPF.
func (n *NurseryProgram) RunStats() (RunStats, error) { return RunStatsOf(n.program) }

// Close unloads everything.
func (n *NurseryProgram) Close() error { return errors.Join(n.program.Close(), n.maps.Close()) }
