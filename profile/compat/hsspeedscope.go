package compat

import (
	"slices"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/stacks"
)

// builtin is the number of RTS cost centres that hs-speedscope expects before the
// program's.
const builtin = 7

// maxDepth is the largest stack depth of a PROF_SAMPLE.
const maxDepth = 255

// deeper is a frame that replaces all frames below the topmost 254.
var deeper = &profile.Frame{Name: "… deeper frames"}

// hsSpeedscope writes the samples of the clock event as a cost-centre profile. All
// samples get the same weight, one interval: the mean of the original weights.
func hsSpeedscope(ss []*profile.Selection) (Write, error) {
	s, err := clock(ss)
	if err != nil {
		return nil, err
	}
	return func(w *eventlog.Writer) error {
		t := newCentres(s)
		if err := w.Write(0, eventlog.NoCap, &eventlog.ProfBegin{TickNs: max(1, s.Total/s.Samples)}); err != nil {
			return err
		}
		if err := t.define(w); err != nil {
			return err
		}
		return t.samples(w)
	}, nil
}

// centres numbers frames from 1 as cost centres.
type centres struct {
	s      *profile.Selection
	walker *stacks.Walker
	ids    map[*profile.Frame]uint32
	frames []*profile.Frame
	stacks [][]uint32 // by site, innermost first
}

func newCentres(s *profile.Selection) *centres {
	t := &centres{s: s, walker: stacks.NewWalker(s, false), ids: make(map[*profile.Frame]uint32), stacks: make([][]uint32, len(s.Profile.Sites))}
	for site := range s.EachSample() {
		if t.stacks[site] != nil {
			continue
		}
		stack := t.walker.Stack(site)
		for i, f := range stack {
			if i == maxDepth-1 && len(stack) > maxDepth {
				t.stacks[site] = append(t.stacks[site], t.id(deeper))
				break
			}
			t.stacks[site] = append(t.stacks[site], t.id(f.Frame))
		}
		if len(stack) == 0 {
			t.stacks[site] = []uint32{t.id(&hiddenFrame)}
		}
	}
	return t
}

var hiddenFrame = profile.Frame{Name: "(hidden)"}

func (t *centres) id(f *profile.Frame) uint32 {
	id, ok := t.ids[f]
	if !ok {
		t.frames = append(t.frames, f)
		id = uint32(len(t.frames))
		t.ids[f] = id
	}
	return id
}

// define writes the definitions that hs-speedscope expects: seven that it drops, one with
// the highest id that no sample uses, and the frames, in descending order of ids.
func (t *centres) define(w *eventlog.Writer) error {
	unused := uint32(len(t.frames) + 1)
	for i := range uint32(builtin) {
		if err := w.Write(0, eventlog.NoCap, &eventlog.CostCentre{Centre: unused + builtin - i, Label: "(none)", Module: "(none)", SrcLoc: "<built-in>"}); err != nil {
			return err
		}
	}
	if err := w.Write(0, eventlog.NoCap, &eventlog.CostCentre{Centre: unused, Label: "(none)", Module: "(none)", SrcLoc: "<built-in>"}); err != nil {
		return err
	}
	for i, f := range slices.Backward(t.frames) {
		cc := &eventlog.CostCentre{Centre: uint32(i + 1), Label: name(f), Module: f.Module, SrcLoc: location(f)}
		if err := w.Write(0, eventlog.NoCap, cc); err != nil {
			return err
		}
	}
	return nil
}

func (t *centres) samples(w *eventlog.Writer) error {
	tick := uint64(0)
	for site, smp := range t.s.EachSample() {
		tick++
		ev := &eventlog.ProfSample{Cap: smp.Capability, Tick: tick, Stack: t.stacks[site]}
		if err := w.Write(smp.Time, eventlog.NoCap, ev); err != nil {
			return err
		}
	}
	return nil
}
