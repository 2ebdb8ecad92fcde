package heap

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"ccagent/eventlog"
	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/diagnosis"
	"ccagent/profile/footprint"
	"ccagent/profile/threads"
	"ccagent/ui/printer"
)

// RSS is where the memory of a process was, at the last census of a log.
type RSS struct {
	Profile *profile.Profile
}

// footprintRows is how many rows of a list are printed where Top does not say.
const footprintRows = 8

func lastFootprint(p *profile.Profile) *columns.Footprint {
	if n := len(p.Footprints); n > 0 {
		return &p.Footprints[n-1]
	}
	return nil
}

// Text implements printer.Report.
func (r RSS) Text(w io.Writer, o printer.Options) error {
	p := newOut(w, o)
	f := lastFootprint(r.Profile)
	if f == nil {
		p.Note("%s", diagnosis.NoFootprint(r.Profile))
		return p.Flush()
	}
	a := footprint.Of(f, r.Profile.LastGraph())
	parts := []string{printer.Fit(o.File, 60), "RSS " + format.Bytes(f.Resident), "accounted for " + format.Bytes(a.Accounted)}
	if f.Swapped > 0 {
		parts = append(parts, "in swap "+format.Bytes(f.Swapped))
	}
	p.Wrap(p.Bold, "   ", parts...)
	for _, note := range footprintNotes(f) {
		p.Note("%s", note)
	}
	p.Line("")
	p.Hang("What to do: ", p.Bold, a.Advice.Text)
	p.Line("")
	const bar = 12
	p.Line(p.Bold("        bytes   share " + strings.Repeat(" ", bar) + "  what it is for"))
	row := func(bytes uint64, what string) {
		share := float64(bytes) / float64(max(1, f.Resident))
		p.Line(printer.PadLeft(format.Bytes(bytes), 13), printer.PadLeft(format.Percent(share), 8), " ", printer.Bar(share, share, bar), "  ", printer.Fit(what, p.room(24+bar)))
	}
	for _, x := range a.Rows {
		row(x.Bytes, x.Title)
	}
	if a.Difference >= 0 {
		row(uint64(a.Difference), "not accounted for")
	} else {
		p.Line(printer.PadLeft(format.Signed(a.Difference), 13), strings.Repeat(" ", 9+bar), "  more than the kernel counts")
	}
	if f.StackBytes+f.Slop > 0 {
		p.Note("small objects include %s of stacks, and %s left behind by closures that have shrunk", format.Bytes(f.StackBytes), format.Bytes(f.Slop))
	}
	if len(f.Pins) > 0 {
		p.Line("")
		p.Line(p.Bold("   free there  megablocks       held  what holds megablocks that have free blocks"))
		rows := o.Rows(len(f.Pins), footprintRows)
		for i := range f.Pins[:min(len(f.Pins), rows)] {
			x := &f.Pins[i]
			p.Line(printer.PadLeft(format.Bytes(x.Free), 13), printer.PadLeft(format.Count(x.Megablocks), 12), printer.PadLeft(format.Bytes(x.Held), 11), "  ", printer.Fit(footprint.Pin(x), p.room(38)))
		}
	}
	if len(f.Stacks) > 0 {
		p.Line("")
		p.Line(p.Bold("        stack  of " + format.Plural(f.Threads, "thread") + ", the largest"))
		rows := o.Rows(len(f.Stacks), 3)
		for i := range f.Stacks[:min(len(f.Stacks), rows)] {
			p.Line(printer.PadLeft(format.Bytes(f.Stacks[i].Bytes), 13), "  ", printer.Fit(stackOwner(&f.Stacks[i]), p.room(15)))
			if frames := foldedStack(r.Profile, f.Stacks[i].Node, textFrames); len(frames) > 0 {
				p.Line(p.Faint(strings.Repeat(" ", 17) + printer.Fit(strings.Join(frames, " < "), p.room(17))))
			}
		}
	}
	if len(a.Files) > 0 {
		p.Line("")
		p.Line(p.Bold("        bytes  of mapped files"))
		rows := o.Rows(len(a.Files), 4)
		for _, x := range a.Files[:min(len(a.Files), rows)] {
			p.Line(printer.PadLeft(format.Bytes(x.Bytes), 13), "  ", printer.Fit(x.Name, p.room(15)))
		}
	}
	return p.Flush()
}

// Frames of a stack that are shown in text, and kept in JSON.
const (
	textFrames = 6
	jsonFrames = 64
)

// foldedStack names the frames of a stack, leaf first, in which what follows itself is one.
func foldedStack(p *profile.Profile, node uint32, most int) (names []string) {
	for _, f := range threads.StackOf(p, node) {
		name := f.Name
		if f.File != "" && f.Line > 0 {
			name += fmt.Sprintf(" %s:%d", path.Base(f.File), f.Line)
		}
		if n := len(names); n > 0 && names[n-1] == name {
			continue
		}
		if len(names) == most {
			return append(names, "…")
		}
		names = append(names, name)
	}
	return names
}

func stackOwner(s *eventlog.FootprintStack) string {
	t := fmt.Sprintf("thread %d", s.TSO)
	if s.Label != "" {
		t += " “" + s.Label + "”"
	}
	return t
}

func footprintNotes(f *columns.Footprint) []string {
	notes := slices.Clone(f.Notes)
	if f.Beside {
		notes = append(notes, "pages were counted when the program ran on, a moment after its heap's descriptors were read: the pause that was allowed is too short for both")
	}
	return notes
}

type rssJSON struct {
	Problem     string      `json:"problem,omitempty"` // why there is nothing
	RSS         *uint64     `json:"rss_bytes"`
	Accounted   *uint64     `json:"accounted_bytes"`
	Unaccounted *int64      `json:"unaccounted_bytes"`
	Swapped     *uint64     `json:"swapped_bytes"`
	Beside      *bool       `json:"beside"`
	Parts       []partJSON  `json:"parts"`
	Files       []fileJSON  `json:"files"`
	Slop        *uint64     `json:"slop_bytes"`
	SmallStacks *uint64     `json:"small_stack_bytes"`
	Megablocks  *uint64     `json:"megablocks"`
	Partly      *uint64     `json:"partly_free_megablocks"`
	Pins        []pinJSON   `json:"pins"`
	Threads     *uint64     `json:"threads"`
	Stacks      []stackJSON `json:"stacks"`
	Advice      *adviceJSON `json:"advice"`
	Notes       []string    `json:"notes"`
}

type partJSON struct {
	Part       string  `json:"part"`
	Title      string  `json:"title"`
	Generation *uint32 `json:"generation,omitempty"`
	Closure    string  `json:"closure,omitempty"`
	Bytes      uint64  `json:"bytes"`
	Mapped     uint64  `json:"mapped_bytes"`
	Count      uint64  `json:"count"`
	Share      float64 `json:"share"`
}

type fileJSON struct {
	Path   string `json:"path"`
	Bytes  uint64 `json:"bytes"`
	Mapped uint64 `json:"mapped_bytes"`
}

type pinJSON struct {
	Part       string `json:"part"`
	Title      string `json:"title"`
	Closure    string `json:"closure,omitempty"`
	Moved      bool   `json:"moved"`
	Megablocks uint64 `json:"megablocks"`
	Free       uint64 `json:"free_bytes"`
	Held       uint64 `json:"held_bytes"`
	Count      uint64 `json:"count"`
}

type stackJSON struct {
	Thread uint64   `json:"thread"`
	Label  string   `json:"label"`
	Bytes  uint64   `json:"bytes"`
	Frames []string `json:"frames"` // leaf first
}

type adviceJSON struct {
	Part  string   `json:"part"`
	Bytes uint64   `json:"bytes"`
	Flags []string `json:"flags"`
	Text  string   `json:"text"`
}

// JSON implements printer.Report; all is in it.
func (r RSS) JSON(w io.Writer, _ printer.Options) error {
	doc := rssJSON{Parts: []partJSON{}, Files: []fileJSON{}, Pins: []pinJSON{}, Stacks: []stackJSON{}, Notes: []string{}}
	f := lastFootprint(r.Profile)
	if f == nil {
		doc.Problem = diagnosis.NoFootprint(r.Profile)
		return printer.JSON(w, doc)
	}
	a := footprint.Of(f, r.Profile.LastGraph())
	doc.RSS, doc.Accounted, doc.Unaccounted, doc.Swapped, doc.Beside = &f.Resident, &a.Accounted, &a.Difference, &f.Swapped, &f.Beside
	doc.Slop, doc.SmallStacks, doc.Megablocks, doc.Partly, doc.Threads = &f.Slop, &f.StackBytes, &f.Megablocks, &f.Partly, &f.Threads
	doc.Notes = append(doc.Notes, f.Notes...)
	for _, x := range a.Rows {
		j := partJSON{Part: x.Kind.String(), Title: x.Title, Closure: x.Name, Bytes: x.Bytes, Mapped: x.Mapped, Count: x.Count, Share: float64(x.Bytes) / float64(max(1, f.Resident))}
		if x.Kind == eventlog.FootprintLive {
			j.Generation = &x.Generation
		}
		doc.Parts = append(doc.Parts, j)
	}
	for _, x := range a.Files {
		doc.Files = append(doc.Files, fileJSON{x.Name, x.Bytes, x.Mapped})
	}
	for i := range f.Pins {
		x := &f.Pins[i]
		doc.Pins = append(doc.Pins, pinJSON{x.Kind.String(), footprint.Pin(x), x.Name, x.Moved, x.Megablocks, x.Free, x.Held, x.Count})
	}
	for _, s := range f.Stacks {
		doc.Stacks = append(doc.Stacks, stackJSON{s.TSO, s.Label, s.Bytes, append([]string{}, foldedStack(r.Profile, s.Node, jsonFrames)...)})
	}
	doc.Advice = &adviceJSON{a.Advice.Kind.String(), a.Advice.Bytes, append([]string{}, a.Advice.Flags...), a.Advice.Text}
	return printer.JSON(w, doc)
}
