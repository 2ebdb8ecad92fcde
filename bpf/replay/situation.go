//go:build linux && cgo && amd64

package replay

import (
	"errors"
	"fmt"
	"io"

	"ccagent/bpf/replay/oracle"
	"ccagent/bpf/replay/trace"
)

// Situation is a place to stop testdata/programs/situations at.
type Situation struct {
	Name string
	Mode string   // the program's argument
	Args []string // further ones
	RTS  []string
	// Via is a Haskell function that the thread runs first. In situations in C it identifies
	// the OS thread.
	Via string
	// At is the function to stop at, for the Nth time (0 = first).
	At  string
	Nth int
	// Until makes it step on to the first instruction for which it is true; nil: no step.
	Until func(*oracle.Truth) bool
	What  string // for the snapshot's comment
}

// midAdjustment: Sp is not at the caller's frame, nor at any other; the frame is some words
// above.
func midAdjustment(t *oracle.Truth) bool { return t.Top == oracle.TopRow && t.Shift > 0 && t.Scan > 0 }

// ownContinuation: Sp is at a frame of the running code, which it has returned into or just
// built.
func ownContinuation(t *oracle.Truth) bool {
	return t.Top == oracle.TopRow && t.Shift > 0 && t.Scan == 0
}

// Situations are the situations that snapshots are recorded of.
var Situations = []Situation{
	{Name: "recursion", Mode: "recursion", At: "bottom", What: "Main.bottom below 20 frames of Main.down"},
	{Name: "deep", Mode: "recursion", Args: []string{"50000"}, At: "bottom", What: "Main.bottom below 50,000 frames of Main.down"},
	{Name: "mutual", Mode: "mutual", At: "bottom", What: "a cycle of two frames"},
	{Name: "mutual-deep", Mode: "mutual", Args: []string{"2000"}, At: "bottom", What: "2,000 frames in a cycle of two"},
	{Name: "thunks", Mode: "thunks", At: "bottom", Args: []string{"30"}, What: "a chain of thunks that are being forced: update frames"},
	{Name: "thunks-deep", Mode: "thunks", At: "bottom", Args: []string{"2000"}, What: "2,000 thunks that are being forced, in several stack chunks"},
	{Name: "heap-check", Mode: "allocate", Via: "allocating", At: "stg_gc_noregs", Nth: 50, What: "where a heap check has failed, in the RTS's Cmm code"},
	{Name: "arguments", Mode: "arguments", At: "many", Nth: 10, What: "stack arguments on top at a function's entry"},
	{Name: "mid-adjustment", Mode: "arguments", At: "many", Until: midAdjustment, What: "between a change of Sp and the store of the frame, or above arguments"},
	{Name: "own-continuation", Mode: "mutual", At: "pong", Until: ownContinuation, What: "Sp is at the running code's own frame"},
	{Name: "apply", Mode: "apply", At: "higher", What: "below the frames of unknown calls"},
	{Name: "unsafe", Mode: "unsafe", Via: "unsafely", At: "c_inner", What: "C called unsafely"},
	{Name: "unsafe-deeper", Mode: "unsafe", Via: "unsafely", At: "c_leaf", Nth: 3, What: "C called by C called unsafely, the STG registers on the C stack"},
	{Name: "safe", Mode: "safe", Via: "safely", At: "c_leaf", Nth: 3, What: "C called safely"},
	{Name: "collect", Mode: "collect", Via: "collected", At: "GarbageCollect", What: "a collection that the program asked for by a safe call"},
	{Name: "collect-nursery", Mode: "allocate", Via: "allocating", At: "GarbageCollect", What: "a collection because the nursery was full"},
	{Name: "underflow", Mode: "recursion", Args: []string{"3000"}, RTS: []string{"-kc4k", "-kb1k"}, At: "bottom", What: "many small stack chunks"},
	{Name: "catch", Mode: "catch", At: "bottom", What: "below catch frames"},
	{Name: "masked", Mode: "masked", At: "bottom", What: "below catch frames and those that restore the masking state"},
	{Name: "stm", Mode: "stm", At: "bottom", What: "in a transaction with orElse and catchSTM"},
	{Name: "unsafePerformIO", Mode: "unsafePerformIO", At: "bottom", What: "below unsafePerformIO"},
	{Name: "caf", Mode: "caf", At: "bottom", What: "evaluating a CAF that another needs"},
}

// ErrNotThere is returned if a situation does not occur in a build: each release and way
// compiles code differently.
var ErrNotThere = errors.New("situation does not arise")

// Start runs the program to the situation and returns the id of the thread stopped there.
// The caller closes the process.
func (s *Situation) Start(path string, b Build, stderr io.Writer) (*Process, int, error) {
	args := append([]string{s.Mode}, s.Args...)
	// Without the timer every run is the same.
	args = append(append(args, "+RTS", "-V0"), s.RTS...)
	p, err := StartProcess(path, args, b, stderr)
	if err != nil {
		return nil, 0, err
	}
	tid, err := s.run(p)
	if err != nil {
		p.Close()
		return nil, 0, fmt.Errorf("run to situation %s: %w", s.Name, err)
	}
	return p, tid, nil
}

func (s *Situation) run(p *Process) (tid int, err error) {
	if s.Via != "" {
		via, err := p.FindFunction(s.Via)
		if err != nil {
			return 0, err
		}
		if tid, err = p.RunTo(via, 1); err != nil {
			return 0, err
		}
		if _, _, err := p.Truth(tid); err != nil {
			return 0, fmt.Errorf("walk at %s: %w", s.Via, err)
		}
	}
	at, err := p.FindFunction(s.At)
	if err != nil {
		return 0, err
	}
	if tid, err = p.RunTo(at, max(1, s.Nth)); err != nil || s.Until == nil {
		return tid, err
	}
	const mostSteps = 5000
	for range mostSteps {
		if err := p.Step(tid); errors.Is(err, trace.ErrExited) {
			return 0, ErrNotThere
		} else if err != nil {
			return 0, err
		}
		if truth, _, err := p.Truth(tid); err == nil && s.Until(truth) {
			return tid, nil
		}
	}
	return 0, ErrNotThere
}
