package hot

import (
	"fmt"
	"strings"

	"ccagent/profile"
	"ccagent/ui/printer"
)

// ratioWidth is that of a column.
const ratioWidth = 7

// ratioHeads are the columns' heads: IPC, and events in a thousand instructions.
func ratioHeads(r *profile.Ratios) string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	if r.IPC {
		b.WriteString(printer.PadLeft("ipc", ratioWidth))
	}
	for i := range r.PerKilo {
		b.WriteString(printer.PadLeft(string(rune('a'+i))+"/ki", ratioWidth))
	}
	return b.String() + "  "
}

// ratioNote explains the columns.
func (p out) ratioNote(pr *profile.Profile, r *profile.Ratios) {
	if r == nil {
		return
	}
	var parts []string
	if r.IPC {
		parts = append(parts, "ipc: instructions per cycle")
	}
	for i, event := range r.PerKilo {
		parts = append(parts, fmt.Sprintf("%c/ki: %s per thousand instructions", 'a'+i, pr.Events[event].Name()))
	}
	p.Note("%s; - where there are fewer than %d samples", strings.Join(parts, ", "), profile.LeastSamples)
}

func ratioCells(r *profile.Ratios, id profile.ElementID) string {
	if r == nil {
		return ""
	}
	of := r.Of(id)
	var b strings.Builder
	cell := func(known bool, v float64) {
		text := "-"
		if known {
			text = fmt.Sprintf("%.2f", v)
			if v >= 100 {
				text = fmt.Sprintf("%.0f", v)
			}
		}
		b.WriteString(printer.PadLeft(text, ratioWidth))
	}
	if r.IPC {
		cell(of.IPC > 0, of.IPC)
	}
	for _, v := range of.PerKilo {
		cell(v >= 0, v)
	}
	return b.String() + "  "
}

// ratiosJSON are an element's ratios; unknown ones are left out.
type ratiosJSON struct {
	IPC float64 `json:"ipc,omitempty"`
	// PerKilo is by event: counts in a thousand instructions.
	PerKilo map[string]float64 `json:"per_thousand_instructions,omitempty"`
}

func ratiosOf(pr *profile.Profile, r *profile.Ratios, id profile.ElementID) *ratiosJSON {
	if r == nil {
		return nil
	}
	of := r.Of(id)
	out := &ratiosJSON{IPC: of.IPC, PerKilo: map[string]float64{}}
	for i, v := range of.PerKilo {
		if v >= 0 {
			out.PerKilo[pr.Events[r.PerKilo[i]].Name()] = v
		}
	}
	return out
}
