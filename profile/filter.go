package profile

import (
	"regexp"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// Filter chooses samples and frames. The zero Filter keeps all samples of the default
// event.
type Filter struct {
	// Event is 1 + the position of an event in Profile.Events; 0 means
	// Profile.DefaultEvent. See WithEvent.
	Event int
	Range Range
	// A sample is kept if each of Focus matches one of its frames and no Ignore
	// matches any. Hide removes matching causes from frames. A frame left without
	// causes is removed, and its cost goes to its caller.
	//
	// An expression matches a frame by the name of its procedure ("Main.loadPhase",
	// "stg_ap_pp_fast"), by the source bindings and files in its cause set, and by
	// its category ("(GC)"). An expression that begins with "^module " or "^package "
	// is only compared with "module NAME" or "package NAME".
	Focus, Ignore, Hide []*regexp.Regexp
	// Merge removes the frames with matching names from the stacks; their cost goes
	// to their callers. It looks at the frame's own name; Hide looks at its causes.
	Merge []*regexp.Regexp
	// Collapse shows each matching module as one element, and adjacent frames of it
	// as one frame. With "^package " it does this for packages, which take
	// precedence.
	Collapse []*regexp.Regexp
	// FoldRecursion removes the frames between two frames of the same function from
	// the stacks of trees and exports, so that no function is on a stack twice.
	FoldRecursion bool
	// The following fields keep samples that have one of the values; an empty field
	// keeps all.
	Threads    []uint64 // Haskell threads (TSO ids)
	TIDs       []uint32 // OS threads
	PIDs       []uint32
	Caps       []uint32
	CPUs       []uint32
	Categories []eventlog.Category // of the leaf
	Programs   []string            // with code of one on the stack, by its name or path: see Profile.Program
}

// WithEvent returns f for the event at a position in Profile.Events.
func (f Filter) WithEvent(i int) Filter {
	f.Event = i + 1
	return f
}

// Range is a time range, From ≤ t < To, in ns. To = 0 means the end of the log.
type Range struct{ From, To uint64 }

func (r Range) has(t uint64) bool { return t >= r.From && (r.To == 0 || t < r.To) }

// samplePredicate is the part of a filter that can be decided without a frame.
type samplePredicate struct {
	event    uint8
	rng      Range
	narrow   bool   // some contexts of the event are not kept
	contexts []bool // by context: whether it is kept
	sites    []bool // by site: whether it is kept; nil keeps all
}

func (p *Profile) predicate(f *Filter, event int) samplePredicate {
	q := p.contextsOf(f, event)
	q.rng = f.Range
	if len(f.Focus)+len(f.Ignore)+len(f.Categories)+len(f.Programs) > 0 {
		q.sites = p.keptSites(f)
	}
	return q
}

// contextsOf returns the predicate for an event and a filter's threads, capabilities and
// CPUs.
func (p *Profile) contextsOf(f *Filter, event int) samplePredicate {
	q := samplePredicate{
		event: uint8(event), contexts: make([]bool, len(p.Contexts)),
		narrow: len(f.Threads)+len(f.TIDs)+len(f.PIDs)+len(f.Caps)+len(f.CPUs) > 0,
	}
	for i := range p.Contexts {
		c := &p.Contexts[i]
		t := &p.Threads[c.Thread]
		q.contexts[i] = int(c.Event) == event && keeps(f.Threads, t.TSO) && keeps(f.TIDs, t.TID) && keeps(f.PIDs, t.PID) &&
			keeps(f.Caps, uint32(c.Cap)) && keeps(f.CPUs, uint32(c.CPU))
	}
	return q
}

func keeps[T comparable](allowed []T, v T) bool {
	return len(allowed) == 0 || slices.Contains(allowed, v)
}

func (q *samplePredicate) keep(c *columns.Chunk, i int) bool {
	return q.contexts[c.Context[i]] && (q.sites == nil || q.sites[c.Site[i]]) && q.rng.has(c.Time[i])
}

// keptSites returns the sites that pass the parts of a filter that look at stacks.
func (p *Profile) keptSites(f *Filter) []bool {
	kept := make([]bool, len(p.Sites))
	cats := p.siteCategories()
	for i := range kept {
		kept[i] = keeps(f.Categories, cats[i])
	}
	apply := func(re *regexp.Regexp, want bool) {
		on := p.stackMatches(re)
		bare := p.newMatcher(re)
		for i, s := range p.Sites {
			if kept[i] {
				hit := on[s.Node] || (s.Kernel || s.Node == 0) && bare.category(p.LeafCategory(s))
				kept[i] = hit == want
			}
		}
	}
	if len(f.Programs) > 0 {
		on := p.runsIn(f.Programs)
		for i, s := range p.Sites {
			kept[i] = kept[i] && on[s.Node]
		}
	}
	for _, re := range f.Focus {
		apply(re, true)
	}
	for _, re := range f.Ignore {
		apply(re, false)
	}
	return kept
}

// stackMatches returns for each node whether a frame of its stack matches. Frames
// rootwards of a context mark do not belong to the stack.
func (p *Profile) stackMatches(re *regexp.Regexp) []bool {
	m := p.newMatcher(re)
	places := make([]int8, len(p.Places)) // 0 not decided, 1 match, −1 no match
	on := make([]bool, len(p.Nodes.Parent))
	for n := 1; n < len(on); n++ {
		k := p.Nodes.Kind[n]
		if k == eventlog.FrameContext {
			continue
		}
		if on[p.Nodes.Parent[n]] {
			on[n] = true
			continue
		}
		if columns.Structural(k) {
			continue
		}
		pl := p.Nodes.Place[n]
		if places[pl] == 0 {
			places[pl] = -1
			if m.place(pl) {
				places[pl] = 1
			}
		}
		on[n] = places[pl] == 1
	}
	return on
}

// matcher matches an expression against names and caches the results.
type matcher struct {
	p        *Profile
	re       *regexp.Regexp
	scope    nameScope
	bindings []int8
	files    []int8
	cats     [eventlog.CategoryKernel + 1]int8
	waits    int8
}

func (p *Profile) newMatcher(re *regexp.Regexp) *matcher {
	return &matcher{p: p, re: re, scope: scopeOf(re), bindings: make([]int8, len(p.Symbols.Bindings)), files: make([]int8, len(p.Symbols.Files))}
}

func (m *matcher) once(known *int8, names ...string) bool {
	if *known == 0 {
		*known = -1
		for _, n := range names {
			if n != "" && m.re.MatchString(n) {
				*known = 1
			}
		}
	}
	return *known == 1
}

func (m *matcher) binding(id columns.BindingID) bool {
	b := &m.p.Symbols.Bindings[id]
	name := m.scope.of(b)
	if program := m.p.programOf(b); program != "" && name != "" {
		return m.once(&m.bindings[id], name, ofProgram(name, program))
	}
	return m.once(&m.bindings[id], name)
}

func (m *matcher) file(id columns.FileID) bool {
	return m.once(&m.files[id], m.p.Symbols.Files[id].Path)
}

func (m *matcher) category(c eventlog.Category) bool {
	c = min(c, eventlog.CategoryKernel)
	return m.once(&m.cats[c], categoryElement(c))
}

func (m *matcher) item(it item) bool {
	if it.span != 0 {
		file := m.p.Symbols.Spans[it.span].File
		if m.file(file) || m.scope != scopeName && m.p.Symbols.Bindings[it.binding].Module == "" && m.binding(m.p.ModuleOfFile()[file]) {
			return true
		}
	}
	if it.waiting && m.once(&m.waits, waitingElement) {
		return true
	}
	if it.named != "" && m.re.MatchString(it.named) {
		return true
	}
	return m.binding(it.binding) || it.kind == KindCategory && m.category(it.category)
}

// place reports whether a frame matches: its procedure or a member of its cause set.
func (m *matcher) place(id uint32) bool {
	if !m.p.Places[id].Class.Named() {
		return false
	}
	owner := m.p.Owner(id)
	if m.binding(owner) || m.binding(m.p.Symbols.Bindings[owner].Source) {
		return true
	}
	hit := false
	m.p.items(id, func(it item) { hit = hit || m.item(it) })
	return hit
}

// siteCategories returns the category of each site's leaf.
func (p *Profile) siteCategories() []eventlog.Category {
	c := &p.categories
	c.once.Do(func() {
		c.of = make([]eventlog.Category, len(p.Sites))
		for i := range c.of {
			c.of[i] = min(p.LeafCategory(p.Sites[i]), eventlog.CategoryKernel)
		}
	})
	return c.of
}
