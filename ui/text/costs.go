package text

import (
	"fmt"
	"io"

	"ccagent/profile"
)

const costRows = 30

// Costs prints what bindings' evaluation consists of: what the program counted
// itself, if it was compiled with -ticky, and what samples tell. made is the
// selection of an event that counts allocated bytes; it may be nil.
func Costs(w io.Writer, s, made *profile.Selection, o Options) error {
	p := newPrinter(w, o)
	p.heading(s)
	if len(s.Profile.Ticky) > 0 {
		p.ticky(s.Profile)
		p.line("")
	}
	if s.Samples == 0 {
		return p.flush()
	}
	c := s.Costs(made)
	p.line(p.bold("estimated from samples: shares of " + fit(s.Summary().Event, 16) + ", and bytes"))
	p.line(p.bold("    own update  apply   case  thunk        made  binding"))
	n := o.top(len(c.Rows), costRows)
	for i := range c.Rows[:n] {
		r := &c.Rows[i]
		bytes := "          ."
		if c.Made > 0 && r.Made > 0 {
			bytes = fmt.Sprintf("%11s", "~"+Bytes(r.Made))
		}
		share := func(w uint64) string {
			if w == 0 {
				return "     ."
			}
			return fmt.Sprintf("%6s", percent(s.Fraction(w)))
		}
		p.line(" ", share(r.Own), " ", share(r.Update), " ", share(r.Apply), " ", share(r.Cases), " ", share(r.Thunks), " ", bytes, "  ", fit(r.Name, 0))
	}
	if rest := len(c.Rows) - n; rest > 0 {
		p.line(p.faint(fmt.Sprintf("%s more: --top 0 prints all", plural(uint64(rest), "row"))))
	}
	p.line("")
	p.note("own: in its code; update (U): in the update of thunks that it waits for; apply (F, V): in calls and evaluation of what it does not know")
	p.note("case (C): a case of it waits for its scrutinee; thunk: a thunk of its code is being evaluated; made (H): bytes that its code allocated")
	if len(s.Profile.Ticky) == 0 {
		p.note("shares of samples are no counts of steps: those only a program compiled with -ticky has")
	}
	if made == nil {
		p.note("the log has no allocation: record with -e cycles,alloc")
	}
	return p.flush()
}

// ticky prints exact counts.
func (p *printer) ticky(pr *profile.Profile) {
	p.line(p.bold("counted by the program (-ticky): exact"))
	p.line(p.bold("       entries        made  of such  kind  closure"))
	counters := pr.TickyByEntries()
	n := p.o.top(len(counters), costRows)
	for i := range counters[:n] {
		c := &counters[i]
		module, name, kind := c.Source()
		bytes := func(n uint64) string {
			if n == 0 {
				return "."
			}
			return Bytes(n)
		}
		if module != "" {
			name = module + "." + name
		}
		p.line(fmt.Sprintf("%14s %11s %8s  %-4s  ", Count(c.Entries), bytes(c.Allocs), bytes(c.Allocated), fit(kind, 4)), fit(name, 0), p.faint("  "+fit(c.Name, 0)))
	}
	if rest := len(counters) - n; rest > 0 {
		p.line(p.faint(fmt.Sprintf("%s more: --top 0 prints all", plural(uint64(rest), "row"))))
	}
	p.note("entries of functions (F) and of thunks (V); made (H): bytes allocated by the code; of such: bytes of these closures (-ticky-allocd)")
}

type costsJSON struct {
	Event string `json:"event"`
	Unit  string `json:"unit"`
	Total uint64 `json:"total"`
	// Counters are exact; null unless the program was compiled with -ticky.
	Counters []counterJSON `json:"counters"`
	// Estimates are of samples: shares of the total, and bytes.
	Estimates []estimateJSON `json:"estimates"`
	// MadeTotal is null in logs without allocation.
	MadeTotal *uint64 `json:"made_total"`
}

type counterJSON struct {
	Name      string `json:"name"`
	Module    string `json:"module"`
	Binding   string `json:"binding"`
	Kind      string `json:"kind"`
	Arity     uint16 `json:"arity"`
	Args      string `json:"args"`
	Entries   uint64 `json:"entries"`
	Allocs    uint64 `json:"allocated_by"`
	Allocated uint64 `json:"allocated_of"`
}

type estimateJSON struct {
	Binding     string  `json:"binding"`
	Module      string  `json:"module"`
	Package     string  `json:"package"`
	Own         float64 `json:"own"`
	Update      float64 `json:"update"`
	Apply       float64 `json:"apply"`
	Case        float64 `json:"case"`
	Thunk       float64 `json:"thunk"`
	Made        uint64  `json:"made_bytes"`
	MadeSamples uint64  `json:"made_samples"`
}

// CostsJSON writes what Costs prints.
func CostsJSON(w io.Writer, s, made *profile.Selection, o Options) error {
	c := s.Costs(made)
	sum := s.Summary()
	doc := costsJSON{Event: sum.Event, Unit: sum.Unit, Total: s.Total, Estimates: []estimateJSON{}}
	if made != nil {
		doc.MadeTotal = &c.Made
	}
	counters := s.Profile.TickyByEntries()
	for i := range counters[:o.top(len(counters), len(counters))] {
		t := &counters[i]
		module, name, kind := t.Source()
		doc.Counters = append(doc.Counters, counterJSON{t.Name, module, name, kind, t.Arity, t.Kinds, t.Entries, t.Allocs, t.Allocated})
	}
	for i := range c.Rows[:o.top(len(c.Rows), len(c.Rows))] {
		r := &c.Rows[i]
		doc.Estimates = append(doc.Estimates, estimateJSON{
			r.Name, r.Module, r.Package, s.Fraction(r.Own), s.Fraction(r.Update), s.Fraction(r.Apply),
			s.Fraction(r.Cases), s.Fraction(r.Thunks), r.Made, r.MadeSamples,
		})
	}
	return writeJSON(w, doc)
}
