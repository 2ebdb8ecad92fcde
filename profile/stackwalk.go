package profile

import (
	"iter"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// EachSample gives the selection's samples in the order of the log.
func (s *Selection) EachSample() iter.Seq2[columns.SiteID, columns.Sample] {
	return func(yield func(columns.SiteID, columns.Sample) bool) {
		if s.Event < 0 {
			return
		}
		p := s.Profile
		for k, c := range p.Chunks {
			for i := 0; i < c.N; i++ {
				if s.pred.keep(c, i) && !yield(columns.SiteID(c.Site[i]), p.Sample(k*columns.ChunkSize+i)) {
					return
				}
			}
		}
	}
}

// Keeps reports whether the selection has the i-th sample of the log.
func (s *Selection) Keeps(i int) bool {
	return s.Event >= 0 && s.pred.keep(s.Profile.Chunks[i/columns.ChunkSize], i%columns.ChunkSize)
}

// StackFrame is a frame of one stack.
type StackFrame struct {
	Frame *Frame          // shared: two frames are alike if their pointers are
	Place columns.PlaceID // 0 if the frame stands for no code: frames left out, the kernel as a whole, …
}

// StackWalker tells the stacks of a selection's sites. It is not safe for concurrent
// use.
type StackWalker struct {
	b       *treeBuilder
	whole   bool
	visible []int8
	scratch []StackFrame
}

// StackWalker gives the selection's stacks as Tree shows them: without the
// frames that only structure them. If whole is set, neighbouring frames of one
// binding are not made one.
func (s *Selection) StackWalker(whole bool) *StackWalker {
	return &StackWalker{
		b: newTreeBuilder(s, TreeOptions{MaxDepth: -1}, 0), whole: whole,
		visible: make([]int8, len(s.Profile.Places)),
	}
}

// Stack gives a site's stack, leaf first, valid until the next call. A stack
// without any frame is empty: all of it is hidden.
func (w *StackWalker) Stack(id columns.SiteID) []StackFrame {
	b := w.b
	p, frames := b.p, b.frames.frames
	site := p.Sites[id]
	w.scratch = w.scratch[:0]
	add := func(frame uint32, place columns.PlaceID) {
		f := &frames[frame]
		if n := len(w.scratch); !w.whole && n > 0 && w.scratch[n-1].Frame == f && frame != frameSkippedWords {
			// Of frames that become one the root-most stands for all, as in Tree.
			w.scratch[n-1].Place = place
			return
		}
		w.scratch = append(w.scratch, StackFrame{f, place})
	}
	switch {
	case site.Kernel && !p.onPath(site.Node, eventlog.FrameKernel):
		add(frameKernel, 0)
	case site.Node == 0:
		add(frameUnresolved, 0)
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
		add(frame, place)
	}
	if columns.Incomplete(site.Stop) && site.Node != 0 {
		add(frameCut+min(uint32(site.Stop), uint32(len(columns.Event{}.Stops)-1)), 0)
	}
	if b.s.Filter.FoldRecursion && !w.whole {
		w.fold()
	}
	return w.scratch
}

// fold takes what lies between two frames of one function out of the stack.
func (w *StackWalker) fold() {
	s := w.scratch
	kept := len(s) // s[kept:] is what is left, root last
	for i := len(s) - 1; i >= 0; i-- {
		again := -1
		for j := kept; j < len(s) && s[i].Frame.Kind != KindCategory; j++ {
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

// CauseLine is an element of a cause set with the line of its nearest span.
type CauseLine struct {
	Element *Element
	Line    uint32 // 0 if unknown
}

// CauseLines appends the elements of a place at a level, nearest first, to dst:
// those that Hot attributes it to. It appends nothing for a place that is no
// code, or has all its causes hidden.
func (s *Selection) CauseLines(dst []CauseLine, level Level, place columns.PlaceID) []CauseLine {
	ix := s.index(level)
	p := s.Profile
	for _, id := range ix.of(uint32(place)) {
		e := &ix.elements[id]
		c := CauseLine{Element: e, Line: e.Span.Line}
		if level == LevelBinding && e.Kind == KindSource {
			c.Line = 0
			p.items(uint32(place), func(it item) {
				if c.Line == 0 && it.span != 0 && it.binding == e.Binding {
					c.Line = p.Symbols.Spans[it.span].Line
				}
			})
			if c.Line == 0 {
				c.Line = e.Span.Line
			}
		}
		dst = append(dst, c)
	}
	return dst
}

// LeafPlace is the place that bears the cost of a site's samples; 0 if none
// does.
func (s *Selection) LeafPlace(id columns.SiteID) columns.PlaceID {
	if n := s.Leaf[id]; n != 0 && !s.Profile.Sites[id].Kernel {
		return columns.PlaceID(s.Profile.Nodes.Place[n])
	}
	return 0
}
