package reasons

import (
	"fmt"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// See is where more is to be found.
type See uint8

// The views that sentences refer to.
const (
	SeeElement    See = iota // the element itself, opened
	SeeStacks                // who calls whom
	SeePauses                // collections over time
	SeeAllocation            // the event of allocated bytes
	SeeRecording             // how the log was recorded
)

// Sentence says in words where a selection's weight is.
type Sentence struct {
	Text    string
	More    string // goes on after Text, where there is room
	Element string // what it is about, as in Hot; empty if it is about nothing in particular
	See     []See
	SeeMore []See // of what More says
	// Shorter are what takes the place of Text and More where these have no room, from the fullest;
	// none if Text alone does.
	Shorter []string
}

// All is where to find more of Text and More.
func (s *Sentence) All() []See { return append(s.See[:len(s.See):len(s.See)], s.SeeMore...) }

// stands is the share from which on something stands out.
const stands = 0.05

// few is the number of samples below which shares are not worth a sentence.
const few = 30

// SentenceOf returns the sentence about a selection.
func SentenceOf(s *profile.Selection) Sentence {
	if s.Samples == 0 || pending(s) {
		return Sentence{}
	}
	what := unitOf(s)
	if effective := s.Batched().Effective(); effective < few {
		return Sentence{Text: fmt.Sprintf("Too few samples to say where %s is: %s", what, format.Worth(s.Samples, "sample", effective)), More: "; let the program run longer, or record more often (-F)", See: []See{SeeRecording}}
	}
	h := s.Hot(profile.LevelBinding)
	if s.CountsTime() {
		if c := s.Collector(); c.Inclusive >= stands && c.Inclusive >= largest(h) {
			return collected(s, c)
		}
	}
	switch e := s.EventDef(); {
	case e.Waits():
		if out, ok := waited(s, h, what); ok {
			return out
		}
	case e.Granted == columns.STM || e.Granted == columns.STMCPU:
		if out, ok := attempted(s, h); ok {
			return out
		}
	}
	first := top(h)
	if first == nil {
		return Sentence{}
	}
	if e := first.Element; e.Kind == profile.KindCategory && Explains(e.Name) && first.Share >= stands {
		return unsourced(s, first)
	}
	return sourced(s, h, what)
}

// pending reports whether code that stands out may not have its name yet, since the log is being written.
func pending(s *profile.Selection) bool { return s.Summary().Pending >= stands }

// unitOf names what a selection's weight is.
func unitOf(s *profile.Selection) string {
	switch e := s.EventDef(); {
	case s.CountsTime():
		return "CPU time"
	case s.CountsBytes():
		return "what is allocated"
	case e.Waits():
		return "the time in which threads wait"
	case e.Granted == columns.Duplicated:
		return "the CPU time of duplicated evaluation"
	default:
		return "all " + e.Title()
	}
}

// top is the row with the largest share; nil if no sample has a cause.
func top(h *profile.Hot) *profile.Row {
	if len(h.Rows) == 0 || h.Rows[0].Share == 0 {
		return nil
	}
	return &h.Rows[0]
}

// largest is the share of the largest row but for the collector's.
func largest(h *profile.Hot) float64 {
	for i := range h.Rows {
		if n := h.Rows[i].Element.Name; n != GC && n != GCWaiting {
			return h.Rows[i].Share
		}
	}
	return 0
}

// collected is the sentence of a selection that spends most on collecting garbage.
func collected(s *profile.Selection, c profile.Collector) Sentence {
	r := Of(s, GC)
	out := Sentence{Element: GC, See: []See{SeeElement, SeePauses}}
	share := format.Percent(c.Inclusive) + " of CPU time is "
	subject, brief := share+"garbage collection", share+"GC"
	var of []string
	if c.Waiting >= c.Inclusive/4 {
		of = append(of, "much of it "+waiting)
	} else if r != nil && len(r.Parts) > 0 {
		of = append(of, "mostly "+r.Parts[0].Name)
	}
	kernel := format.Percent(c.Kernel) + " in the kernel for it" // which is no part of (GC)
	if c.Kernel >= c.Inclusive/4 {
		of = append(of, kernel)
	}
	out.Text = strings.Join(append([]string{subject}, of...), ", ")
	if c.Kernel >= 0.01 && c.Kernel < c.Inclusive/4 {
		out.More = ", " + kernel
	}
	if r != nil && r.By != "" {
		out.See = append(out.See, SeeAllocation)
		if causes := functions(r.Causes); len(causes) > 0 {
			who := "; " + causes[0].Name + " allocates " + format.Percent(causes[0].Share) + " of all bytes"
			out.More += who
			if len(of) > 0 {
				out.Shorter = []string{subject + ", " + of[0] + who, brief + ", " + of[0] + who}
			}
			out.Shorter = append(out.Shorter, brief+who)
		}
	}
	out.Shorter = append(out.Shorter, out.Text, subject)
	return out
}

// functions leaves out causes that are no function.
func functions(causes []Part) []Part {
	var out []Part
	for _, c := range causes {
		if c.Name != byCollector && c.Name != byRTS && c.Name != byNobody {
			out = append(out, c)
		}
	}
	return out
}

// inWords names what an element without source is.
var inWords = map[string]string{
	GC: "the collector", RTS: "the run-time system", STG: "the STG machine's own code", Search: "search for values", Foreign: "C code",
	Kernel: "the kernel", Unresolved: "code that has no name",
}

// unsourced is the sentence of a selection whose largest element has no source.
func unsourced(s *profile.Selection, row *profile.Row) Sentence {
	name := row.Element.Name
	out := Sentence{Element: name, See: []See{SeeElement}}
	out.Text = format.Percent(row.Share) + " of " + unitOf(s) + " is in " + inWords[name]
	r := Of(s, name)
	if r == nil {
		return out
	}
	if len(r.Parts) > 0 && r.Parts[0].Weight*2 >= r.Weight {
		brief := out.Text
		out.Text += ", mostly " + r.Parts[0].Name
		out.Shorter = []string{out.Text, brief}
	}
	if causes := functions(r.Causes); len(causes) > 0 && causes[0].Weight*3 >= r.Weight {
		out.More, out.SeeMore = ", for "+causes[0].Name, []See{SeeStacks}
	}
	return out
}

// sourced is the sentence of a selection whose largest element is a function.
func sourced(s *profile.Selection, h *profile.Hot, what string) Sentence {
	row := &h.Rows[0]
	if row.Share < stands {
		return Sentence{
			Text: fmt.Sprintf("No function stands out: the largest, %s, has %s of %s", row.Element.Name, format.Percent(row.Share), what),
			See:  []See{SeeStacks},
		}
	}
	out := Sentence{Element: row.Element.Name, See: []See{SeeElement}}
	same := sameSamples(s, h)
	switch {
	case len(same) == 1:
		out.Text = fmt.Sprintf("%s of %s is in %s", format.Percent(row.Share), what, row.Element.Name)
	case len(same) <= 3:
		out.Text = fmt.Sprintf("%s of %s is in code that comes from %s", format.Percent(row.Share), what, strings.Join(same[:len(same)-1], ", ")+" and "+same[len(same)-1])
	default:
		out.Text = fmt.Sprintf("%s of %s is in code that comes from %d functions, %s among them", format.Percent(row.Share), what, len(same), same[0])
	}
	if s.CountsTime() && row.Share < 0.5 {
		if c := s.Collector(); c.Inclusive >= stands {
			out.More = "; " + format.Percent(c.Inclusive) + " is garbage collection"
			if c.Kernel >= 0.01 {
				out.More += ", in the kernel too"
			}
			out.SeeMore = []See{SeePauses}
		}
	}
	return out
}

// sameSamples names the leading elements that have the samples of the first, and no others.
func sameSamples(s *profile.Selection, h *profile.Hot) []string {
	first := &h.Rows[0]
	out := []string{first.Element.Name}
	for i := 1; i < len(h.Rows); i++ {
		r := &h.Rows[i]
		if r.ShareWeight != first.ShareWeight || r.Samples != first.Samples {
			break
		}
		if s.Overlap(profile.LevelBinding, first.Element.ID, r.Element.ID) == first.ShareWeight {
			out = append(out, r.Element.Name)
		}
	}
	return out
}
