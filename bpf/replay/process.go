//go:build linux && cgo && amd64

package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"ccagent/bpf/replay/oracle"
	"ccagent/bpf/replay/snapshot"
	"ccagent/bpf/replay/trace"
	"ccagent/internal/ghc"
)

// Build is what a program was compiled with.
type Build struct {
	GHC      string // "9.0.2"
	Threaded bool
	Profiled bool
}

// Process is a running program that can be stopped, walked by the walker and the oracle, and
// recorded. As for trace.Process, one OS thread must make all calls.
type Process struct {
	*trace.Process
	Program *oracle.Program
	Build   Build
	memory  *os.File
	text    [2]snapshot.Range
	tasks   map[int]uint64 // Tasks of OS threads that were seen in Haskell code
}

// StartProcess starts a program and runs it to its entry point, where its libraries are
// mapped.
func StartProcess(path string, args []string, b Build, stderr io.Writer) (*Process, error) {
	p := &Process{Build: b, tasks: map[int]uint64{}}
	var err error
	if p.Process, err = trace.Start(path, args, trace.Options{Stderr: stderr}); err != nil {
		return nil, err
	}
	if err := p.begin(); err != nil {
		p.Close()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return p, nil
}

func (p *Process) begin() (err error) {
	if p.Program, err = oracle.Open(p.PID); err != nil {
		return err
	}
	if p.memory, err = oracle.OpenMemory(p.PID); err != nil {
		return err
	}
	// A statically linked program is already at its entry point.
	registers, err := p.Registers(p.PID)
	if err != nil {
		return err
	}
	const rip = 16
	if entry := p.Program.Entry(); registers[rip] != entry {
		if _, err := p.RunTo(entry, 1); err != nil {
			return err
		}
	}
	if err := p.Program.Refresh(p.PID); err != nil {
		return err
	}
	p.text = p.Program.Text()
	return nil
}

// Close kills the process.
func (p *Process) Close() {
	p.Process.Close()
	if p.memory != nil {
		p.memory.Close()
	}
}

// FindFunction returns the address of the code of a Haskell function (of its worker if there
// is one) or of a C function.
func (p *Process) FindFunction(name string) (uint64, error) {
	for _, s := range []string{"Main_zdw" + name + "_info", "Main_" + name + "1_info", "Main_" + name + "_info", name} {
		if at := p.Program.Lookup(s); at != 0 {
			return at, nil
		}
	}
	return 0, fmt.Errorf("find function %s: no such symbol: %w", name, ErrNotThere)
}

// Truth walks a stopped thread with the oracle.
func (p *Process) Truth(tid int) (*oracle.Truth, []uint64, error) {
	registers, err := p.Registers(tid)
	if err != nil {
		return nil, nil, err
	}
	t := oracle.Thread{
		Registers: oracle.RegistersX86(registers), Memory: p.memory, Program: p.Program,
		GHC: p.Build.GHC, Profiled: p.Build.Profiled, Threaded: p.Build.Threaded,
		Text: p.text, Task: p.tasks[tid],
	}
	truth, err := t.Walk()
	if err == nil && truth.Capability >= 0 && len(truth.Frames) > 1 && truth.Frames[1].Kind != "c" {
		if p.tasks[tid], err = t.RunningTask(); err != nil {
			return truth, registers, err
		}
	}
	return truth, registers, err
}

// Target makes a target from a stopped thread.
func (p *Process) Target(tid int, registers []uint64, tables *Tables, maxFrames int) Target {
	return Target{
		Arch: snapshot.X86, Registers: registers, PID: p.PID, Tables: tables, MaxFrames: maxFrames,
		Layout: Layout(p.Build.GHC, p.Build.Profiled, p.Build.Threaded, p.text), Task: p.tasks[tid],
	}
}

// ErrNoReturn is returned if a thread does not return to its caller within the limit of
// steps.
var ErrNoReturn = errors.New("thread does not return soon")

// IsCaller finds out whether the thread will return to the frame at that address, by letting
// it run: it replaces the word there by a unique value and steps the thread until it is
// about to return there (yes), to a frame closer to the root, or has stored another word
// (no: the word was the running code's own frame, or no frame). The process may be unusable
// afterwards.
func (p *Process) IsCaller(tid int, frame uint64) (bool, error) {
	const mostSteps = 50_000
	const unique = 0x5eed_5eed_5eed_5eed
	if err := p.Poke(tid, frame, unique); err != nil {
		return false, err
	}
	code, word := make([]byte, 3), make([]byte, 8)
	for range mostSteps {
		r, err := p.Registers(tid)
		if err != nil {
			return false, err
		}
		if _, err := p.memory.ReadAt(word, int64(frame)); err != nil {
			return false, err
		}
		if binary.LittleEndian.Uint64(word) != unique {
			return false, nil
		}
		const rbp, rip = 4, 16
		if _, err := p.memory.ReadAt(code, int64(r[rip])); err != nil {
			return false, err
		}
		if returns := code[0] == 0xff && code[1] == 0x65 && code[2] == 0; returns && r[rbp] >= frame {
			return r[rbp] == frame, nil
		}
		if err := p.Step(tid); err != nil {
			return false, err
		}
	}
	return false, ErrNoReturn
}

// ErrUnconfirmed is returned for a truth that turned out wrong.
var ErrUnconfirmed = errors.New("the thread does not return to the frame that is said to be its caller's")

// Confirm checks a truth against the thread's behaviour: it must return to the youngest
// frame. If the code has frames of its own above it, or does not return soon, nothing can be
// checked and Confirm returns nil. The process is unusable afterwards.
func (p *Process) Confirm(tid int, truth *oracle.Truth) error {
	if truth.Top != oracle.TopRow && truth.Top != oracle.TopScan {
		return nil
	}
	caller, err := p.IsCaller(tid, truth.Sp+8*uint64(int64(truth.Shift)))
	if errors.Is(err, ErrNoReturn) || errors.Is(err, trace.ErrExited) {
		return nil
	}
	if err == nil && !caller {
		return ErrUnconfirmed
	}
	return err
}

// SnapshotFrames is the frame budget that snapshots are recorded and replayed with: they
// hold the memory needed for it.
const SnapshotFrames = 128

// Record makes a snapshot of a stopped thread whose truth is known. It holds what the walker
// reads, and what a walker with other offsets would read.
func (p *Process) Record(tid int, registers []uint64, truth *oracle.Truth) (*snapshot.Snapshot, error) {
	s := &snapshot.Snapshot{
		Arch: snapshot.X86, GHC: p.Build.GHC, Threaded: p.Build.Threaded, Profiled: p.Build.Profiled,
		Comment: truth.Comment, Registers: registers, Text: p.text, Task: p.tasks[tid],
	}
	s.Rows = sortedRows(truth.Rows)
	target := p.Target(tid, registers, TablesOf(s), SnapshotFrames)
	record, reads, err := WalkNoting(target)
	if err != nil {
		return nil, err
	}
	around := func(at, before, after uint64) { reads = append(reads, snapshot.Range{Lo: at - before, Hi: at + after}) }
	if truth.Capability >= 0 {
		const base = 3 // r13 in ptrace's order; another value in C code
		around(registers[base]+ghc.BaseCurrentTSO, 40, 112)
	}
	if s.Task != 0 {
		around(s.Task, 0, 160)
	}
	around(truth.CStack.Lo, 128, truth.CStack.Hi-truth.CStack.Lo+128)
	for i, f := range truth.Frames {
		if f.Sp == 0 || i > 2*SnapshotFrames && i < len(truth.Frames)-SnapshotFrames && f.Kind != "underflow" {
			continue
		}
		around(f.Address, 40, 8)
		if i < SnapshotFrames || i > len(truth.Frames)-16 {
			around(f.Sp, 0, 24)
		}
		if i+1 < len(truth.Frames) && truth.Frames[i+1].Chunk != f.Chunk {
			around(f.Sp, 0, 16)
		}
	}
	var segments []snapshot.Segment
	for _, r := range reads {
		b := make([]byte, r.Hi-r.Lo)
		if _, err := p.memory.ReadAt(b, int64(r.Lo)); err == nil {
			segments = append(segments, snapshot.Segment{Address: r.Lo, Bytes: b})
		}
	}
	s.Memory = snapshot.Join(segments)
	seen := map[uint64]bool{0: true}
	for _, f := range truth.Frames {
		if !seen[f.Address] {
			seen[f.Address] = true
			s.Names = append(s.Names, snapshot.Name{Address: f.Address, Text: p.Program.Name(f.Address)})
		}
	}
	slices.SortFunc(s.Names, func(a, b snapshot.Name) int {
		if a.Address < b.Address {
			return -1
		}
		return 1
	})
	replayed, err := Walk(FromSnapshot(s, SnapshotFrames))
	if err != nil {
		return nil, err
	}
	if !slices.Equal(replayed.Frames, record.Frames) || replayed.Stop != record.Stop {
		return nil, errors.New("record snapshot: its walk differs from that of the process")
	}
	return s, nil
}

func sortedRows(rows []snapshot.Row) []snapshot.Row {
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(a, b snapshot.Row) int {
		if a.Lo < b.Lo {
			return -1
		}
		return 1
	})
	return slices.CompactFunc(sorted, func(a, b snapshot.Row) bool { return a.Lo == b.Lo })
}
