package graph

import (
	"errors"

	"ccagent/internal/ghc"
)

// ErrResult is returned for a result that refers to what it does not have.
var ErrResult = errors.New("the result refers to what it does not have")

// Check reports whether all that a result refers to is in it. It is for results that come from
// another process.
func (r *Result) Check() error {
	inTypes := func(i int) bool { return i >= 0 && i < len(r.Types) }
	inRoots := func(i int) bool { return i >= 0 && i < len(r.Roots) }
	if len(r.Types) > maxTypes+maxBranches+maxPaths*(maxSteps+1) || len(r.Tree) > maxBranches || len(r.Paths) > maxPaths {
		return ErrResult
	}
	if len(r.Stuck) > maxStuck || uint64(len(r.Stuck)) > r.StuckThreads {
		return ErrResult
	}
	for i := range r.Stuck {
		if s := &r.Stuck[i]; len(s.Label) > maxLabel*4 || s.Why > ghc.BlockedOnMVarRead {
			return ErrResult
		}
	}
	for i := range r.Types {
		if r.Types[i].Kind > uint32(ghc.AnnFrame) {
			return ErrResult
		}
	}
	for i := range r.Roots {
		if root := &r.Roots[i]; root.Kind == 0 || root.Kind >= rootKinds || len(root.Label) > maxLabel*4 {
			return ErrResult
		}
	}
	for i, b := range r.Tree {
		if b.Parent < 0 || b.Parent > i || b.Parent == i && i > 0 || b.Type != -1 && !inTypes(b.Type) || b.Root != -1 && !inRoots(b.Root) {
			return ErrResult
		}
	}
	for _, p := range r.Paths {
		if !inTypes(p.Type) || !inRoots(p.Root) || len(p.Steps) > maxSteps {
			return ErrResult
		}
		for _, s := range p.Steps {
			if !inTypes(s.Type) {
				return ErrResult
			}
		}
	}
	return nil
}
