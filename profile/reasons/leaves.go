package reasons

import (
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// waitsFor are the elements of waits in words.
var waitsFor = map[string]string{
	"(MVar)": "an MVar to be filled or emptied", "(MVar read)": "an MVar to be filled", "(black hole)": "a value that another thread evaluates",
	"(STM)": "a transaction's variables to change", "(delay)": "threadDelay to end", "(read)": "input", "(write)": "output to be taken",
	"(throwTo)": "another thread to take an exception", "(foreign call)": "foreign calls to return",
}

// waited is the sentence of a selection of waits: what is waited for, and where; false if no leaf says so.
func waited(s *profile.Selection, h *profile.Hot, what string) (Sentence, bool) {
	var leaves []*profile.Row
	for i := range h.Rows {
		if r := &h.Rows[i]; r.Share > 0 && profile.WaitElement(r.Element.Name) {
			leaves = append(leaves, r)
		}
	}
	if len(leaves) == 0 {
		return Sentence{}, false
	}
	first := leaves[0]
	out := Sentence{Element: first.Element.Name, See: []See{SeeElement, SeeStacks}}
	out.Text = format.Percent(first.Share) + " of " + what + " is spent waiting for " + words(first.Element.Name)
	if in, share := mostIn(s, h, first); in != "" {
		brief := out.Text
		out.Text += ", " + format.Percent(share) + " in " + in
		out.Shorter = []string{out.Text, brief}
	}
	if len(leaves) > 1 && leaves[1].Share >= stands {
		out.More = "; " + format.Percent(leaves[1].Share) + " for " + words(leaves[1].Element.Name)
	}
	return out, true
}

func words(element string) string {
	if w := waitsFor[element]; w != "" {
		return w
	}
	return "something else"
}

// mostIn is the function that has most of a leaf's weight, the narrowest of several; those that have the weight of
// everything, as main does, only where there is no other.
func mostIn(s *profile.Selection, h *profile.Hot, leaf *profile.Row) (name string, share float64) {
	var best *profile.Row
	for i := range h.Rows {
		r := &h.Rows[i]
		if r.Element.FileID == 0 || r.Share == 0 || s.Total == 0 {
			continue
		}
		part := float64(s.Overlap(profile.LevelBinding, leaf.Element.ID, r.Element.ID)) / float64(s.Total)
		if part < stands {
			continue
		}
		const everything = 0.995
		switch {
		case best == nil:
		case (r.Share > everything) != (best.Share > everything):
			if r.Share > everything {
				continue
			}
		case part < share || part == share && r.Share >= best.Share:
			continue
		}
		best, name, share = r, r.Element.Name, part
	}
	return name, share
}

// attempted is the sentence of a selection of attempts to run transactions: how much was thrown away, and where; false
// if no leaf says how they ended.
func attempted(s *profile.Selection, h *profile.Hot) (Sentence, bool) {
	var lost []*profile.Row
	ends := 0
	for i := range h.Rows {
		r := &h.Rows[i]
		if ended, committed := profile.EndElement(r.Element.Name); ended {
			ends++
			if !committed && r.Share > 0 {
				lost = append(lost, r)
			}
		}
	}
	if ends == 0 {
		return Sentence{}, false
	}
	what, were, they := "the attempts to run transactions", " were thrown away", "they "
	if s.EventDef().Granted == columns.STMCPU {
		what, were, they = "the CPU time in transactions", " was thrown away", "in attempts that "
	}
	sum := 0.0
	var how []string
	for _, r := range lost {
		sum += r.Share
		how = append(how, format.Percent(r.Share)+" "+ended[r.Element.Name])
	}
	if len(lost) == 0 {
		return Sentence{Text: "All of " + what + " seen have committed", Element: "(committed)", See: []See{SeeElement}}, true
	}
	out := Sentence{Element: lost[0].Element.Name, See: []See{SeeElement, SeeStacks}}
	brief := format.Percent(sum) + " of " + what + were
	out.Text = brief
	if len(lost) > 1 {
		out.Text += ": " + strings.Join(how, ", ")
	} else {
		out.Text += ": " + they + ended[lost[0].Element.Name]
	}
	out.Shorter = []string{out.Text, brief}
	if in, share := mostIn(s, h, lost[0]); in != "" {
		if share < 0.99*lost[0].Share {
			in += ", " + format.Percent(share)
		}
		out.More = "; what " + ended[lost[0].Element.Name] + " is in " + in
	}
	return out, true
}

// ended are the elements of attempts that did not commit, in words.
var ended = map[string]string{"(failed validation)": "failed validation", "(retried)": "retried", "(exception)": "ended by an exception"}
