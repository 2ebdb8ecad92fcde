package export

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/stacks"
)

// Folded writes one line for each stack: its frames, root first and separated by
// semicolons, and its weight after a space. With Options.Causes the leaf is followed by
// those of its causes that have another name, outermost first, marked _[i] like inlined
// functions.
func Folded(w io.Writer, s *profile.Selection, o Options) error {
	out := bufio.NewWriter(w)
	weights := make([]uint64, len(s.Profile.Sites))
	kept := make([]bool, len(weights))
	for site, smp := range s.EachSample() {
		weights[site] += smp.Weight
		kept[site] = true
	}
	walker := stacks.NewWalker(s, false)
	lines := make(map[string]uint64)
	var b strings.Builder
	for site := range weights {
		if !kept[site] {
			continue
		}
		stack := stackOf(walker, columns.SiteID(site))
		b.Reset()
		for i := len(stack) - 1; i >= 0; i-- {
			if b.Len() > 0 {
				b.WriteByte(';')
			}
			writeFrameName(&b, stack[i].Frame.Name)
		}
		if o.Causes {
			foldedCauses(&b, s, stack[0], s.LeafPlace(columns.SiteID(site)), o.Level)
		}
		lines[b.String()] += weights[site]
	}
	stacks := make([]string, 0, len(lines))
	for l := range lines {
		stacks = append(stacks, l)
	}
	slices.Sort(stacks)
	for _, l := range stacks {
		fmt.Fprintf(out, "%s %d\n", l, lines[l])
	}
	return out.Flush()
}

func foldedCauses(b *strings.Builder, s *profile.Selection, leaf stacks.Frame, place columns.PlaceID, level profile.Level) {
	if place == 0 {
		return
	}
	causes := s.CauseLines(nil, level, place)
	for _, c := range slices.Backward(causes) {
		if c.Element.Kind != profile.KindSource || c.Element.Name == leaf.Frame.Name {
			continue
		}
		b.WriteByte(';')
		writeFrameName(b, c.Element.Name)
		b.WriteString("_[i]")
	}
}

// writeFrameName writes a name and replaces the characters that would separate frames
// or end the line.
func writeFrameName(b *strings.Builder, name string) {
	for _, r := range name {
		switch {
		case r == ';':
			r = ':'
		case r < ' ' || r == 0x7f:
			r = '_'
		}
		b.WriteRune(r)
	}
}
