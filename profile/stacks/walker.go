package stacks

import (
	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// Frame is a frame of one stack.
type Frame struct {
	Frame *profile.Frame  // shared: frames are equal if their pointers are
	Place columns.PlaceID // 0 if the frame has no code: frames left out, the kernel as a whole, …
}

// Walker returns the stacks of a selection's sites. It is not safe for concurrent use.
type Walker struct {
	b       *builder
	whole   bool
	visible []int8
	scratch []Frame
}

// NewWalker returns a walker for a selection's stacks as trees show them, without the
// frames that only structure them. If whole is set, adjacent frames of the same binding
// are not combined, and there are no frames for functions that are inlined (Profile.InlinedAt gives them).
func NewWalker(s *profile.Selection, whole bool) *Walker {
	return &Walker{
		b: newBuilder(s, Options{MaxDepth: -1}, 0), whole: whole,
		visible: make([]int8, len(s.Profile.Places)),
	}
}

// Stack returns a site's stack, leaf first, which is valid until the next call. The stack
// is empty if all its frames are hidden.
func (w *Walker) Stack(id columns.SiteID) []Frame {
	b := w.b
	p, frames := b.p, b.frames.List
	site := p.Sites[id]
	w.scratch = w.scratch[:0]
	add := func(frame uint32, place columns.PlaceID) {
		f := &frames[frame]
		if n := len(w.scratch); !w.whole && n > 0 && w.scratch[n-1].Frame == f && frame != profile.FrameSkippedWords {
			// Combined frames have the place of the root-most one, as in
			// trees.
			w.scratch[n-1].Place = place
			return
		}
		w.scratch = append(w.scratch, Frame{f, place})
	}
	switch {
	case site.Kernel && !p.Nodes.OnStack(site.Node, eventlog.FrameKernel):
		add(profile.FrameKernel, 0)
	case site.Node == 0:
		add(profile.FrameUnresolved, 0)
	}
	n := site.Node
	if leaf := b.s.Leaf[id]; b.s.CountsBytes() && leaf != 0 {
		n = leaf
	}
	for ; n != 0; n = p.Nodes.Caller(n) {
		if !b.shows(n, w.visible) {
			continue
		}
		frame, place := b.frameOf(n), columns.PlaceID(p.Nodes.Place[n])
		if p.Nodes.Kind[n] == eventlog.FrameSkipped {
			place = 0
		}
		if inlined := b.frames.Inlined[place]; !w.whole {
			for i := len(inlined) - 1; i >= 0; i-- {
				add(inlined[i], place)
			}
		}
		add(frame, place)
	}
	if columns.Incomplete(site.Stop) && site.Node != 0 {
		add(profile.FrameCut+min(uint32(site.Stop), uint32(len(columns.Event{}.Stops)-1)), 0)
	}
	if b.s.Filter.FoldRecursion && !w.whole {
		w.fold()
	}
	return w.scratch
}

// fold removes the frames between two frames of the same function.
func (w *Walker) fold() {
	s := w.scratch
	kept := len(s) // s[kept:] is what is left, root last
	for i := len(s) - 1; i >= 0; i-- {
		again := -1
		for j := kept; j < len(s) && s[i].Frame.Kind != profile.KindCategory; j++ {
			if s[j].Frame == s[i].Frame {
				again = j
				break
			}
		}
		if again >= 0 {
			kept = again
			continue
		}
		kept--
		s[kept] = s[i]
	}
	w.scratch = append(s[:0], s[kept:]...)
}
