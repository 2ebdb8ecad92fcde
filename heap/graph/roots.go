package graph

import (
	"ccagent/internal/ghc"
)

// RootKind is why closures are alive whatever else refers to them.
type RootKind uint8

// Kinds of roots.
const (
	CAF           RootKind = iota + 1 // a top-level value that code refers to which may still run
	Thread                            // a Haskell thread that may run again
	StablePointer                     // held by foreign code (newStablePtr)
	WeakPointer                       // its finalizers, and its value where the key is static
	rootKinds
)

// Root is a closure that is alive whatever else refers to it.
type Root struct {
	Kind RootKind
	// Pointer is the info pointer of a CAF's code.
	Pointer uint64 `json:",omitempty"`
	// ID and Label are a thread's.
	ID    uint64 `json:",omitempty"`
	Label string `json:",omitempty"`
	// Number is which stable pointer it is.
	Number uint64 `json:",omitempty"`
	// Retained is the bytes that nothing but this root keeps alive.
	Retained uint64

	node uint32
}

// maxStatic bounds the static closures that are followed, maxRoots the roots.
const (
	maxStatic = 1 << 24
	maxRoots  = 1 << 22
)

// static takes note of a static closure that is referred to.
func (a *analysis) static(at uint64) {
	if at == 0 || at == a.lastStatic || a.trial {
		return
	}
	a.lastStatic = at
	slot := &a.recent[at>>4%uint64(len(a.recent))]
	if *slot == at {
		return
	}
	*slot = at
	if a.seen[at] || len(a.seen) >= maxStatic {
		return
	}
	if r := a.modules.find(at); r == nil || !r.Data {
		if r == nil {
			a.outside++
		}
		return
	}
	a.seen[at] = true
	a.todo = append(a.todo, at)
}

// statics follows static closures from one to the next, and makes each CAF that leads into the heap
// a root (scavenge_static in rts/sm/Scav.c).
func (a *analysis) statics() {
	for len(a.todo) > 0 {
		at := a.todo[len(a.todo)-1]
		a.todo = a.todo[:len(a.todo)-1]
		pointer, ok := a.modules.word(at)
		if !ok {
			continue
		}
		t := a.tables.of(pointer)
		payload := at + 8*uint64(a.layout.header)
		field := func(i uint64) uint64 {
			w, _ := a.modules.word(payload + 8*i)
			return w
		}
		switch k := t.kind; {
		case k == ghc.IndStatic: // what it leads to, static_link, saved_info
			to := field(0) &^ pointerTag
			if node := a.nodes.node(to); node != 0 {
				a.root(Root{Kind: CAF, Pointer: field(2), node: node})
			} else {
				a.static(to)
			}
		case k.In(ghc.Constr, ghc.ConstrNoCAF), k == ghc.FunStatic:
			ptrs := uint64(uint32(t.layout))
			for i := range min(ptrs, maxStaticFields) {
				p, ok := a.modules.word(payload + 8*i)
				if !ok {
					break
				}
				p &^= pointerTag
				if node := a.nodes.node(p); node != 0 {
					a.root(Root{Kind: CAF, Pointer: pointer, node: node})
				} else {
					a.static(p)
				}
			}
		}
		a.static(t.srt)
	}
}

// maxStaticFields bounds the pointers of a static closure.
const maxStaticFields = 1 << 10

func (a *analysis) root(r Root) {
	if len(a.roots) < maxRoots {
		a.roots = append(a.roots, r)
	} else {
		a.cut = true
	}
}

// special takes note of what a closure means besides its pointers: threads and weak pointers are
// roots.
func (a *analysis) special(node uint32, t *table, at uint64, w []uint64) {
	h := a.layout.header
	switch t.kind {
	case ghc.TSO:
		if a.unwritten(at) { // threads are made by C, elsewhere
			return
		}
		l := &a.layout
		if i := int(l.TSOWhatNext); a.atRest && i/8 < len(w) {
			if next := w[i/8] >> (i % 8 * 8) & 0xffff; next == ghc.ThreadComplete || next == ghc.ThreadKilled {
				return
			}
		}
		r := Root{Kind: Thread, node: node}
		if i := int(l.TSOID) / 8; i < len(w) {
			r.ID = w[i]
		}
		if i := int(l.TSOLabel) / 8; i > 0 && i < len(w) {
			r.Label = a.label(w[i])
		}
		a.root(r)
		if len(a.sleepers) < maxRoots {
			a.sleepers = append(a.sleepers, sleeper{Stuck{ID: r.ID, Label: r.Label, Why: a.whyOf(w)}, node, w})
		}
	case ghc.Weak: // finalizers of C, key, value, finalizer, link
		a.root(Root{Kind: WeakPointer, node: node})
		if len(w) < h+4 {
			return
		}
		key := a.nodes.node(w[h+1] &^ pointerTag)
		if key == 0 {
			key = node // it is static
		}
		if to := a.nodes.node(w[h+3] &^ pointerTag); to != 0 {
			a.finalizers = append(a.finalizers, to)
		}
		for _, p := range w[h+2 : h+4] {
			if to := a.nodes.node(p &^ pointerTag); to != 0 {
				a.ephemerons = append(a.ephemerons, [2]uint32{key, to})
			} else {
				a.static(p &^ pointerTag)
			}
		}
	}
}

// maxLabel bounds a thread's label, in bytes.
const maxLabel = 256

// label reads a thread's label, which is a byte array.
func (a *analysis) label(p uint64) string {
	h := a.layout.header
	w := a.nodes.closure(p &^ pointerTag)
	if len(w) < h+1 || a.tables.of(w[0]).kind != ghc.ArrWords {
		return ""
	}
	n := min(w[h], maxLabel, 8*uint64(len(w)-h-1))
	b := make([]byte, 0, n)
	for i := range n {
		c := byte(w[h+1+int(i/8)] >> (i % 8 * 8))
		b = append(b, c)
	}
	return string(b)
}
