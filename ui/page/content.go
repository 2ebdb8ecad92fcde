package page

import (
	"path"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/footprint"
	"ccagent/profile/reasons"
	"ccagent/profile/source"
	"ccagent/profile/stacks"
	"ccagent/profile/timeline"
)

// Bounds of what a page holds, so that it can be sent.
const (
	maxRows    = 200
	maxFrames  = 20_000
	leastFrame = 0.0002 // of the samples
	maxFiles   = 16
	maxText    = 4 << 20 // bytes of source in all
	buckets    = 300
	maxBands   = 10
)

// content is the page's data, as its script reads it.
type content struct {
	Log      string      `json:"log"`
	About    string      `json:"about"`
	Seconds  float64     `json:"seconds"`
	Said     string      `json:"said"` // where there are no events
	Events   []event     `json:"events"`
	Files    []file      `json:"files"`
	FilesOf  string      `json:"files_of"` // the event that their costs are of
	Time     *overTime   `json:"time"`
	Heap     *heap       `json:"heap"`
	Accounts string      `json:"accounts"`
	Left     []string    `json:"left"` // what did not fit
	Reasons  []reasonRow `json:"reasons"`
}

// event is what was sampled, and where.
type event struct {
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	Total    string  `json:"total"`
	Samples  uint64  `json:"samples"`
	Sentence string  `json:"sentence"`
	Rows     []row   `json:"rows"`
	Frames   []frame `json:"frames"` // the call tree, parents first; 0 is the root
}

type row struct {
	Element   string  `json:"element"`
	Where     string  `json:"where"`
	File      string  `json:"file"`
	Line      uint32  `json:"line"`
	Share     float64 `json:"share"`
	PlusMinus float64 `json:"plus_minus"`
	Only      float64 `json:"only"`
	Inclusive float64 `json:"inclusive"`
	Weight    string  `json:"weight"`
}

// frame is a node of a call tree: name, parent, self and total as shares, where it is written, and
// its weight.
type frame struct {
	Name   string  `json:"n"`
	Parent int     `json:"p"`
	Self   float64 `json:"s"`
	Total  float64 `json:"t"`
	Where  string  `json:"w,omitempty"`
	Weight string  `json:"q"`
}

type file struct {
	Path    string  `json:"path"`
	Share   float64 `json:"share"`
	Problem string  `json:"problem"`
	Lines   []line  `json:"lines"`
}

type line struct {
	Text   string  `json:"x"`
	Share  float64 `json:"s,omitempty"`
	Weight string  `json:"q,omitempty"`
}

// overTime is activity in buckets of equal length: parts of the busiest one, and of a bucket's time
// in collections; GC is null where the log has none.
type overTime struct {
	From     float64   `json:"from"`
	To       float64   `json:"to"`
	Event    string    `json:"event"`
	Activity []float64 `json:"activity"`
	GC       []float64 `json:"gc"`
	// Missing are the buckets of which the log says nothing, GCNotWatched those in which collections
	// were not watched; null if there are none.
	Missing      []bool `json:"missing"`
	GCNotWatched []bool `json:"gc_not_watched"`
}

// heap is what was live over time, in bytes by bucket.
type heap struct {
	From  float64 `json:"from"`
	To    float64 `json:"to"`
	What  string  `json:"what"`
	Peak  string  `json:"peak"`
	Most  uint64  `json:"most"`
	Bands []band  `json:"bands"`
	// NotWatched are the buckets in which the collections that report sizes were not watched; null if
	// there are none.
	NotWatched []bool `json:"not_watched"`
}

type band struct {
	Name  string   `json:"name"`
	Peak  string   `json:"peak"`
	Bytes []uint64 `json:"bytes"`
}

type reasonRow struct {
	Element string   `json:"element"`
	Share   float64  `json:"share"`
	Parts   []share  `json:"parts"`
	By      string   `json:"by"`
	Causes  []share  `json:"causes"`
	Advice  []string `json:"advice"`
}

type share struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

// contentOf collects a page of selections of one log: the first is what the source's costs and the
// timeline are of.
func contentOf(name, accounts string, all []*profile.Selection) *content {
	s := all[0]
	p := s.Profile
	c := &content{Log: name, About: about(p), Seconds: float64(p.Lasted()) / 1e9, Events: []event{}, Files: []file{}, Reasons: []reasonRow{}, FilesOf: s.EventDef().Title(), Accounts: accounts}
	if n := len(p.Footprints); n > 0 {
		c.Said = "Memory: " + footprint.Of(&p.Footprints[n-1], p.LastGraph()).Advice.Text
	} else {
		c.Said = "The log has no samples."
	}
	for _, s := range all {
		if s.Samples > 0 {
			c.Events = append(c.Events, c.event(s))
		}
	}
	if s.Samples > 0 {
		c.reasons(s)
		c.files(s)
		c.Time = activity(s)
	}
	c.Heap = heapOf(p)
	return c
}

func about(p *profile.Profile) string {
	out := path.Base(p.Capture.Program)
	if !p.HaveCapture {
		out = p.RTS
	}
	if v := p.Capture.GHCVersion; v != "" {
		out += ", GHC " + v
	}
	return out
}

func (c *content) event(s *profile.Selection) event {
	sum := s.Summary()
	said := reasons.SentenceOf(s)
	out := event{Name: sum.Title, Unit: sum.Unit, Total: format.Quantity(sum.Total, sum.Unit), Samples: sum.Samples, Sentence: said.Text + said.More, Rows: []row{}}
	h := s.Hot(profile.LevelBinding)
	n := min(len(h.Rows), maxRows)
	for n > 0 && h.Rows[n-1].Share == 0 {
		n--
	}
	sure := s.Sure(profile.LevelBinding, n)
	for i := range h.Rows[:n] {
		r := &h.Rows[i]
		e := r.Element
		out.Rows = append(out.Rows, row{
			Element: e.Name, Where: e.Package, File: e.File, Line: e.Span.Line, Share: r.Share, PlusMinus: sure[i].PlusMinus(r.Share), Only: r.Only, Inclusive: r.Inclusive,
			Weight: format.Quantity(r.ShareWeight, sum.Unit),
		})
	}
	out.Frames = c.frames(s, sum.Unit)
	return out
}

// frames are the call tree's nodes but for the smallest.
func (c *content) frames(s *profile.Selection, unit string) []frame {
	t := stacks.TreeOf(s, stacks.Options{})
	at := make([]int, len(t.Nodes)) // 1 + a node's place among the frames
	var out []frame
	left := 0
	for i := range t.Nodes {
		n := &t.Nodes[i]
		parent := -1
		if n.Parent >= 0 {
			parent = at[n.Parent] - 1
		}
		total := s.Fraction(n.Total)
		if i > 0 && (parent < 0 || total < leastFrame || len(out) >= maxFrames) {
			left++
			continue
		}
		f := frame{Name: n.Name, Parent: parent, Self: s.Fraction(n.Self), Total: total, Weight: format.Quantity(n.Total, unit)}
		if n.Frame != nil {
			f.Where = n.Frame.Module
			if n.Frame.File != "" {
				f.Where = n.Frame.File
			}
		}
		out = append(out, f)
		at[i] = len(out)
	}
	if left > 0 {
		c.Left = append(c.Left, format.Plural(uint64(left), "frame")+" of "+s.EventDef().Title()+" with less than 0.02% each")
	}
	return out
}

func (c *content) reasons(s *profile.Selection) {
	of := func(parts []reasons.Part) []share {
		out := []share{}
		for _, q := range parts {
			out = append(out, share{q.Name, q.Share})
		}
		return out
	}
	h := s.Hot(profile.LevelBinding)
	for i := range h.Rows {
		e := h.Rows[i].Element
		if e.Kind != profile.KindCategory || h.Rows[i].Share < 0.01 {
			continue
		}
		if r := reasons.Of(s, e.Name); r != nil {
			c.Reasons = append(c.Reasons, reasonRow{r.Element, r.Share, of(r.Parts), r.By, of(r.Causes), r.Advice})
		}
	}
}

// files are the source files with the largest shares.
func (c *content) files(s *profile.Selection) {
	room := maxText
	unit := s.EventDef().Unit
	for _, r := range s.Hot(profile.LevelFile).Rows {
		if r.Element.FileID == 0 || r.Share == 0 {
			continue
		}
		v := source.OfFile(s, r.Element.FileID)
		size := 0
		for i := range v.Lines {
			size += len(v.Lines[i].Text) + 1
		}
		if len(c.Files) == maxFiles || size > room {
			c.Left = append(c.Left, "the source "+r.Element.File)
			continue
		}
		room -= size
		f := file{Path: v.Path, Share: r.Share, Problem: v.Problem, Lines: []line{}}
		for i := range v.Lines {
			l := &v.Lines[i]
			for uint32(len(f.Lines))+1 < l.Number {
				f.Lines = append(f.Lines, line{})
			}
			q := line{Text: l.Text, Share: l.Share}
			if l.Share > 0 {
				q.Weight = format.Quantity(uint64(l.Share*float64(s.Total)+0.5), unit)
			}
			f.Lines = append(f.Lines, q)
		}
		c.Files = append(c.Files, f)
	}
}

// activity is a selection over time; nil where the log has no times.
func activity(s *profile.Selection) *overTime {
	if s.Profile.Duration == 0 {
		return nil
	}
	t := timeline.Of(s, timeline.Options{Buckets: buckets})
	out := &overTime{From: float64(t.From) / 1e9, To: float64(t.To) / 1e9, Event: s.EventDef().Title()}
	var most uint64 = 1
	for _, w := range t.Weight {
		most = max(most, w)
	}
	for _, w := range t.Weight {
		out.Activity = append(out.Activity, float64(w)/float64(most))
	}
	out.Missing = t.Missing()
	gc := t.InPauses(s.Profile)
	if gc != nil {
		out.GCNotWatched = timeline.Unwatched(s.Profile, "gc", t.From, t.To, t.Step, len(gc))
	}
	for _, g := range gc {
		out.GC = append(out.GC, float64(g)/float64(t.Step))
	}
	return out
}

// heapOf is the log's first heap profile, or else the heap's sizes; nil if it has neither.
func heapOf(p *profile.Profile) *heap {
	if p.Duration == 0 {
		return nil
	}
	out := &heap{To: float64(p.Duration) / 1e9}
	if len(p.HeapProfiles) > 0 {
		hp := &p.HeapProfiles[0]
		h := timeline.Heap(hp, 0, p.Duration, buckets, maxBands)
		out.What, out.Most, out.Peak = hp.What(), h.Peak, format.Bytes(h.Peak)
		for _, r := range h.Rows {
			out.Bands = append(out.Bands, band{hp.Bands[r.Band].Title(), format.Bytes(r.Peak), r.Bytes})
		}
		if h.Others > 0 {
			out.Bands = append(out.Bands, band{format.Plural(uint64(h.Others), "other band"), "", h.Other})
		}
		return out
	}
	sizes(p, out)
	if out.Bands == nil {
		return nil
	}
	return out
}
