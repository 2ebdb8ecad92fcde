package centres

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/profile/curry"
	"ccagent/ui/printer"
)

const costRows = 30

// KindsReport lists bindings' costs by kind: exact counts of a program that was compiled
// with -ticky, and estimates from samples. Made is the selection of an event that counts
// allocated bytes; it may be nil.
type KindsReport struct{ Selection, Made *profile.Selection }

// Text implements printer.Report.
func (r KindsReport) Text(w io.Writer, o printer.Options) error {
	s, made := r.Selection, r.Made
	p := newOut(w, o)
	p.Heading(s)
	if len(s.Profile.Ticky) > 0 {
		p.ticky(s.Profile)
		p.Line("")
	}
	if s.Samples == 0 {
		return p.Flush()
	}
	c := s.Costs(made)
	p.Line(p.Bold("estimated from samples: shares of " + printer.Fit(s.Summary().Event, 16) + ", and bytes"))
	searches := s.Profile.IsCurry()
	search := func(text string) string {
		if !searches {
			return ""
		}
		return text
	}
	// A binding's depth and what its search allocates are left out where names would have no room.
	wide := o.Width <= 0 || o.Columns() >= 100
	searchMore := func(text string) string {
		if !wide {
			return ""
		}
		return search(text)
	}
	room := 0
	if o.Width > 0 {
		room = o.Columns() - 49 - len(search("1234567")) - len(searchMore("123456"+"123456789012"))
	}
	p.Line(p.Bold("    own update  apply   case  thunk " + search("search ") + searchMore("depth ") + "       made " + searchMore(" for search ") + " binding"))
	n := o.Rows(len(c.Rows), costRows)
	for i := range c.Rows[:n] {
		r := &c.Rows[i]
		bytes := func(n uint64) string {
			if c.Made == 0 || n == 0 {
				return "          ."
			}
			return fmt.Sprintf("%11s", "~"+format.Bytes(n))
		}
		share := func(w uint64) string {
			if w == 0 {
				return "     ."
			}
			return fmt.Sprintf("%6s", format.Percent(s.Fraction(w)))
		}
		p.Line(" ", share(r.Own), " ", share(r.Update), " ", share(r.Apply), " ", share(r.Cases), " ", share(r.Thunks), search(" "+share(r.Search)), searchMore(" "+depthOf(r)), " ", bytes(r.Made), searchMore(" "+bytes(r.MadeSearch)), "  ", printer.Fit(r.Name, room))
	}
	if rest := len(c.Rows) - n; rest > 0 {
		p.Line(p.Faint(fmt.Sprintf("%s more: --top 0 prints all", format.Plural(uint64(rest), "row"))))
	}
	p.Line("")
	p.Note("own: in its code; update (U): in the update of thunks that it waits for; apply (F, V): in calls and evaluation of what it does not know")
	p.Note("case (C): a case of it waits for its scrutinee; thunk: a thunk of its code is being evaluated; made (H): bytes that its code allocated")
	if searches {
		p.Note("search (N, B): choices, guards, failures and their search on the account of the function that called for them, and bytes allocated there")
	}
	if len(s.Profile.Ticky) == 0 {
		p.Note("shares of samples are no counts of steps: those only a program compiled with -ticky has")
	}
	if made == nil {
		p.Note("the log has no allocation: record with -e cycles,alloc")
	}
	if searches {
		p.Note("depth: frames of the search strategy below, on average where there are any: choice points that are open while it works; no interval is known")
		p.nonDeterminism(s, made)
		p.search(s)
	}
	return p.Flush()
}

// nonDeterminism prints how many choices, guards and failures a functional-logic program made.
func (p out) nonDeterminism(s, bytes *profile.Selection) {
	counts := closures.CountsOf(s)
	if counts != nil {
		p.counted(counts)
	}
	if counts != nil && counts.All {
		return
	}
	made := nonDeterminism(s, bytes)
	if len(made) == 0 {
		p.Note("no block of the nursery has a choice, guard or failure: record with -e alloc, for longer")
		return
	}
	p.Line("")
	p.Line(p.Bold("sampled blocks of the nursery: choices (N), variables and their bindings (B), failures that were made"))
	p.Line(p.Bold("      count      95 % interval  constructor"))
	for i := range made {
		m := &made[i]
		p.Line(countOf(m.Count, m.Low, m.High), " ", printer.Fit(m.Constructor, 0))
	}
	p.Note("a choice, guard or failure is made once, and once more by each function that moves it from an argument to its result; large objects, which the sampled blocks have none of, make these counts too large by their part of all bytes")
	for i := range made {
		if m := &made[i]; m.Counted != nil {
			p.Note("exact (-ticky): %s of %s by the code that makes them alone; what GHC put into other functions is not counted", format.Count(*m.Counted), printer.Fit(m.Constructor, 0))
		}
	}
	p.makers(s, bytes)
}

// counted prints what probes counted where such values are made.
func (p out) counted(c *closures.Counts) {
	p.Line("")
	part := 1.0
	if c.StandsNs > 0 {
		part = float64(min(c.LengthNs, c.StandsNs)) / float64(c.StandsNs)
	}
	switch {
	case c.Exact:
		p.Line(p.Bold("counted by probes (-e search): choices (N), variables and their bindings (B), failures that were made: exact"))
	case c.All:
		p.Line(p.Bold("counted by probes (-e search): choices (N), variables and their bindings (B), failures that were made: at least"))
	case part < 1:
		p.Line(p.Bold(fmt.Sprintf("counted by probes (-e search) in %s of the CPU time, then that was too dear: --max-overhead 0 counts all", format.Percent(part))))
	default:
		p.Line(p.Bold("counted by probes (-e search)"))
	}
	if c.Late {
		p.Note("at least: processes that began during the capture may have made more before their probes were in place")
	}
	if c.Unknown > 0 {
		p.Note("%s of the code may make more: its instructions are not known", format.Plural(uint64(c.Unknown), "place"))
	}
	p.Line(p.Bold("      count  constructor"))
	for i := range c.ByType {
		p.Line(fmt.Sprintf("%11s  ", format.Count(uint64(c.ByType[i].Count))), printer.Fit(c.ByType[i].Constructor, 0))
	}
	p.Note("a choice, guard or failure is made once, and once more by each function that moves it from an argument to its result; constants of the program are not made")
	p.Line("")
	p.Line(p.Bold("by the function that made them, or called for them"))
	p.Line(p.Bold("      count      95 % interval  known     constructor"))
	n := p.Rows(len(c.ByFunction), costRows)
	for i := range c.ByFunction[:n] {
		m := &c.ByFunction[i]
		text := fmt.Sprintf("%11s  %20s", format.Count(uint64(m.Count)), "")
		if m.Low < m.High {
			text = countOf(m.Count, m.Low, m.High)
		}
		p.Line(text, " ", fmt.Sprintf("%-9s", m.Known), " ", printer.Fit(m.Constructor, 0), "  for ", printer.Fit(cmp.Or(m.Name, "(no function of the program)"), 0))
	}
	if rest := len(c.ByFunction) - n; rest > 0 {
		p.Line(p.Faint(fmt.Sprintf("%s more: --top 0 prints all", format.Plural(uint64(rest), "row"))))
	}
	if c.All && c.Late {
		return
	}
	p.Note("exact: each was counted in the function's own code, or has a sample with its stack; sampled: a sampled share of an exact number")
}

// countOf prints a number of objects with its interval.
func countOf(count, low, high float64) string {
	return fmt.Sprintf("%11s  %8s to %-8s", "~"+format.Brief(uint64(count), ""), format.Brief(uint64(low), ""), format.Brief(uint64(high), ""))
}

// makers prints how many of them were made for each function.
func (p out) makers(s, bytes *profile.Selection) {
	rows := makers(s, bytes)
	if len(rows) == 0 {
		p.Note("for which functions is not known: no sample of allocation is in code that makes them alone")
		return
	}
	p.Line("")
	p.Line(p.Bold("by the function that called for them"))
	p.Line(p.Bold("      count      95 % interval  known     constructor"))
	n := p.Rows(len(rows), costRows)
	for i := range rows[:n] {
		m := &rows[i]
		name := "(no function of the program)"
		if m.Function != nil {
			name = printer.Fit(*m.Function, 0)
		}
		p.Line(countOf(m.Count, m.Low, m.High), " ", fmt.Sprintf("%-9s", m.Known), " ", printer.Fit(m.Constructor, 0), "  for ", name)
	}
	if rest := len(rows) - n; rest > 0 {
		p.Line(p.Faint(fmt.Sprintf("%s more: --top 0 prints all", format.Plural(uint64(rest), "row"))))
	}
	p.Note("for: the nearest function of the program on the stack; one that makes a choice as the last thing it does has left it, and who wants its value is named")
	p.Note("sampled: a sampled share of what the program counted (-ticky), exact; estimated: of what sampled blocks say; sampling alone is in the interval")
}

// depthOf prints a binding's depth of search in 5 columns.
func depthOf(r *profile.BindingCosts) string {
	if r.Depth == 0 {
		return "    ."
	}
	return fmt.Sprintf("%5s", depthText(r.Depth))
}

func depthText(d float64) string {
	if d < 99.95 {
		return strconv.FormatFloat(d, 'f', 1, 64)
	}
	return format.Brief(uint64(d+0.5), "")
}

// search prints what is known of a functional-logic program's search as a whole.
func (p out) search(s *profile.Selection) {
	d := s.Search()
	if d == nil {
		return
	}
	p.Line("")
	p.Line(p.Bold("sampled: time in search, and its depth"))
	p.Line(fmt.Sprintf("%11s  %8s to %-8s  of the samples have search on their stacks", format.Percent(d.Share), format.Percent(d.Sure.Low), format.Percent(d.Sure.High)))
	switch {
	case d.Depth == 0:
		p.Note("no sample has a frame of a search strategy on its stack: no choice was open, or its alternatives are called last")
	case d.Rough:
		p.Line(fmt.Sprintf("%11s  %8s    %-8s  frames of the search strategy on theirs, where there are any; the most and an interval are not known", depthText(d.Depth), "", ""))
		p.Note("recursion was folded, and what was left out of each stack is known as a mean of all samples in the log with the same stack")
	default:
		p.Line(fmt.Sprintf("%11s  %8s to %-8s  frames of the search strategy on theirs, where there are any; %s at most", depthText(d.Depth), depthText(d.DepthSure.Low), depthText(d.DepthSure.High), format.Count(d.Deepest)))
	}
	if d.AtLeast > 0 {
		p.Note("of %s of those samples the depth is more than was seen: their stacks are cut, or folded", format.Percent(d.AtLeast))
	}
	p.Note("which branches fail is not known when samples are taken: those that fail have at most the time that has search on its stack, collections apart")
}

// searchJSON is the same; see profile.Search.
type searchJSON struct {
	Share     float64  `json:"share"`
	Low       float64  `json:"low"`
	High      float64  `json:"high"`
	Depth     *float64 `json:"depth"`
	DepthLow  *float64 `json:"depth_low"`
	DepthHigh *float64 `json:"depth_high"`
	Deepest   *uint64  `json:"deepest"`
	AtLeast   *float64 `json:"depth_at_least"`
}

func searchOf(s *profile.Selection) *searchJSON {
	d := s.Search()
	if d == nil {
		return nil
	}
	deep := d.Depth > 0
	sure := deep && !d.Rough
	return &searchJSON{d.Share, d.Sure.Low, d.Sure.High, printer.If(deep, d.Depth), printer.If(sure, d.DepthSure.Low), printer.If(sure, d.DepthSure.High), printer.If(sure, d.Deepest), printer.If(deep, d.AtLeast)}
}

// madeJSON is how many objects a constructor of search has made.
type madeJSON struct {
	Constructor string  `json:"constructor"`
	Count       float64 `json:"count"`
	Low         float64 `json:"low"`
	High        float64 `json:"high"`
	Known       string  `json:"known"`
	// Counted is exact; null unless the program was compiled with -ticky, or probes counted all.
	Counted *uint64 `json:"counted"`
}

// makerJSON is how many of them were made for a function.
type makerJSON struct {
	Constructor string  `json:"constructor"`
	Function    *string `json:"binding"`
	Module      *string `json:"module"`
	Package     *string `json:"package"`
	Count       float64 `json:"count"`
	Low         float64 `json:"low"`
	High        float64 `json:"high"`
	Effective   float64 `json:"effective_samples"`
	Known       string  `json:"known"`
}

// allocation returns the selection of what was allocated. Where bytes is nil s is that, or it is nil.
func allocation(s, bytes *profile.Selection) *profile.Selection {
	if bytes == nil && s.EventDef().Unit == "bytes" {
		return s
	}
	return bytes
}

// constructors returns the rows of the constructors that search has, in the sampled blocks of a selection's range.
func constructors(s *profile.Selection) []closures.Row {
	all := closures.All
	all.Range = s.Filter.Range
	return slices.DeleteFunc(closures.Of(s.Profile, all).Rows, func(r closures.Row) bool { return r.Role == curry.Value })
}

// nonDeterminism estimates how many values were made of each constructor that search has, most first.
func nonDeterminism(s, bytes *profile.Selection) []madeJSON {
	var out []madeJSON
	if c := closures.CountsOf(s); c != nil && c.All {
		for _, m := range c.ByType {
			out = append(out, madeJSON{m.Constructor, m.Count, m.Low, m.High, string(m.Known), printer.If(c.Exact, uint64(m.Count))})
		}
		return out
	}
	if bytes = allocation(s, bytes); bytes == nil {
		return nil
	}
	rows := constructors(s)
	for i := range rows {
		r := &rows[i]
		n, low, high := r.Count(bytes.Total)
		counted := r.Counted(bytes)
		out = append(out, madeJSON{r.Name, n, low, high, string(closures.Sampled), printer.If(counted > 0, counted)})
	}
	slices.SortStableFunc(out, func(a, b madeJSON) int { return cmp.Compare(b.Count, a.Count) })
	return out
}

// makers divides them among the functions that they were made for, most first.
func makers(s, bytes *profile.Selection) []makerJSON {
	var rows []closures.Made
	if c := closures.CountsOf(s); c != nil && c.All {
		rows = c.ByFunction
	} else if bytes = allocation(s, bytes); bytes != nil {
		rows = closures.ByFunction(constructors(s), bytes)
	}
	var out []makerJSON
	for _, m := range rows {
		out = append(out, makerJSON{m.Constructor, printer.Known(m.Name), printer.Known(m.Module), printer.Known(m.Package), m.Count, m.Low, m.High, m.Effective, string(m.Known)})
	}
	return out
}

// ticky prints exact counts.
func (p out) ticky(pr *profile.Profile) {
	p.Line(p.Bold("counted by the program (-ticky): exact"))
	p.Line(p.Bold("       entries        made  of such  kind  closure"))
	counters := pr.TickyByEntries()
	n := p.Rows(len(counters), costRows)
	for i := range counters[:n] {
		c := &counters[i]
		module, name, kind := c.Source()
		bytes := func(n uint64) string {
			if n == 0 {
				return "."
			}
			return format.Bytes(n)
		}
		if module != "" {
			name = module + "." + name
		}
		p.Line(fmt.Sprintf("%14s %11s %8s  %-4s  ", format.Count(c.Entries), bytes(c.Allocs), bytes(c.Allocated), printer.Fit(kind, 4)), printer.Fit(name, 0), p.Faint("  "+printer.Fit(c.Name, 0)))
	}
	if rest := len(counters) - n; rest > 0 {
		p.Line(p.Faint(fmt.Sprintf("%s more: --top 0 prints all", format.Plural(uint64(rest), "row"))))
	}
	p.Note("entries of functions (F) and of thunks (V); made (H): bytes allocated by the code; of such: bytes of these closures (-ticky-allocd)")
}

type costsJSON struct {
	Event *string `json:"event"`
	Unit  *string `json:"unit"`
	Total uint64  `json:"total"`
	// Counters are exact; null unless the program was compiled with -ticky.
	Counters []counterJSON `json:"counters"`
	// Estimates are of samples: shares of the total, and bytes.
	Estimates []estimateJSON `json:"estimates"`
	// MadeTotal is null in logs without allocation.
	MadeTotal *uint64 `json:"made_total"`
	// NonDeterminism is sampled; null of programs that are not functional-logic ones.
	NonDeterminism []madeJSON `json:"non_determinism"`
	// Makers divides them among functions; each says how it is known.
	Makers []makerJSON `json:"non_determinism_by_function"`
	// Search is sampled; null of programs that are not functional-logic ones.
	Search *searchJSON `json:"search"`
}

type counterJSON struct {
	Name      string  `json:"name"`
	Module    *string `json:"module"`
	Binding   *string `json:"binding"`
	Kind      *string `json:"kind"`
	Arity     uint16  `json:"arity"`
	Args      *string `json:"args"`
	Entries   uint64  `json:"entries"`
	Allocs    uint64  `json:"allocated_by"`
	Allocated uint64  `json:"allocated_of"`
}

type estimateJSON struct {
	Binding     string  `json:"binding"`
	Module      *string `json:"module"`
	Package     *string `json:"package"`
	Own         float64 `json:"own"`
	Update      float64 `json:"update"`
	Apply       float64 `json:"apply"`
	Case        float64 `json:"case"`
	Thunk       float64 `json:"thunk"`
	Made        *uint64 `json:"made_bytes"`
	MadeSamples *uint64 `json:"made_samples"`
	Search      float64 `json:"search"`
	MadeSearch  *uint64 `json:"made_bytes_search"`
	// Depth is null of programs that are not functional-logic ones.
	Depth *float64 `json:"depth"`
}

// JSON implements printer.Report.
func (r KindsReport) JSON(w io.Writer, o printer.Options) error {
	s, made := r.Selection, r.Made
	c := s.Costs(made)
	sum := s.Summary()
	doc := costsJSON{Event: printer.Known(sum.Event), Unit: printer.Known(sum.Unit), Total: s.Total, Estimates: []estimateJSON{}}
	if made != nil {
		doc.MadeTotal = &c.Made
	}
	if s.Profile.IsCurry() {
		doc.NonDeterminism, doc.Makers, doc.Search = nonDeterminism(s, made), makers(s, made), searchOf(s)
	}
	counters := s.Profile.TickyByEntries()
	for i := range counters[:o.Rows(len(counters), len(counters))] {
		t := &counters[i]
		module, name, kind := t.Source()
		doc.Counters = append(doc.Counters, counterJSON{t.Name, printer.Known(module), printer.Known(name), printer.Known(kind), t.Arity, printer.Known(t.Kinds), t.Entries, t.Allocs, t.Allocated})
	}
	for i := range c.Rows[:o.Rows(len(c.Rows), len(c.Rows))] {
		r := &c.Rows[i]
		doc.Estimates = append(doc.Estimates, estimateJSON{
			r.Name, printer.Known(r.Module), printer.Known(r.Package), s.Fraction(r.Own), s.Fraction(r.Update), s.Fraction(r.Apply),
			s.Fraction(r.Cases), s.Fraction(r.Thunks), printer.If(made != nil, r.Made), printer.If(made != nil, r.MadeSamples), s.Fraction(r.Search), printer.If(made != nil, r.MadeSearch), printer.If(s.Profile.IsCurry(), r.Depth),
		})
	}
	return printer.JSON(w, doc)
}
