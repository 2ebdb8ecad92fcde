package centres

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/centres"
	"ccagent/profile/logtest"
	"ccagent/ui/printer"
)

// centreGraph is a log whose functions call each other at random, in circles too.
func centreGraph(t *testing.T, rng *rand.Rand, names []string) (*profile.Selection, *centres.Costs) {
	t.Helper()
	l := logtest.New()
	var frames []logtest.Frame
	for _, n := range names {
		frames = append(frames, l.Code(l.Binding("main", "Main", n, 0), eventlog.QualityExact, eventlog.CategoryHaskell))
	}
	for range 3 * len(names) {
		var stack []logtest.Frame
		for range 1 + rng.IntN(6) {
			stack = append(stack, frames[rng.IntN(len(frames))])
		}
		l.Sample(1, 1+rng.Uint64N(100), l.Stack(stack...))
	}
	p, err := profile.Load(bytes.NewReader(l.End()))
	if err != nil {
		t.Fatal(err)
	}
	s := p.Select(profile.Filter{})
	set := centres.Set{Patterns: []centres.Pattern{{Preset: centres.PresetBindings}}}
	return s, centres.Attribute(s, centres.Find(p, set), centres.ModeStacks)
}

type svgBox struct{ x, y, w, h float64 }

// readSVG parses a drawing: its boxes, its arcs' titles, all of its text.
func readSVG(t *testing.T, doc string) (width, height float64, boxes []svgBox, titles []string) {
	t.Helper()
	number := func(e xml.StartElement, name string) float64 {
		for _, a := range e.Attr {
			if a.Name.Local == name {
				x, err := strconv.ParseFloat(a.Value, 64)
				if err != nil {
					t.Fatalf("%s=%q", name, a.Value)
				}
				return x
			}
		}
		return 0
	}
	d := xml.NewDecoder(strings.NewReader(doc))
	inTitle := false
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return width, height, boxes, titles
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		switch e := tok.(type) {
		case xml.StartElement:
			switch inTitle = e.Name.Local == "title"; e.Name.Local {
			case "svg":
				width, height = number(e, "width"), number(e, "height")
			case "rect":
				boxes = append(boxes, svgBox{number(e, "x"), number(e, "y"), number(e, "width"), number(e, "height")})
			case "script", "a", "image", "foreignObject", "style":
				t.Errorf("element %s", e.Name.Local)
			}
		case xml.CharData:
			if inTitle {
				titles = append(titles, string(e))
			}
		case xml.EndElement:
			inTitle = false
		case xml.Directive, xml.ProcInst:
			t.Errorf("%v", e)
		}
	}
}

// Boxes lie within the drawing, none on another, callers above callees but where
// calls go in circles; the same figures give the same drawing.
func TestGraphSVG(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 11))
		var names []string
		for i := range 2 + rng.IntN(30) {
			names = append(names, fmt.Sprintf("f%d%s", i, strings.Repeat("x", rng.IntN(60))))
		}
		s, c := centreGraph(t, rng, names)
		var one, two strings.Builder
		if err := GraphSVG(&one, s, c, printer.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := GraphSVG(&two, s, c, printer.Options{}); err != nil || one.String() != two.String() {
			t.Fatalf("seed %d: drawn twice, two drawings (%v)", seed, err)
		}
		width, height, boxes, titles := readSVG(t, one.String())
		if want := len(c.ByCentre) + 1; len(boxes) != want { // and the ground
			t.Fatalf("seed %d: %d boxes, want %d", seed, len(boxes), want)
		}
		if want := len(c.ByCentre) + len(c.Arcs()) + 1; len(titles) != want {
			t.Errorf("seed %d: %d titles, want %d", seed, len(titles), want)
		}
		for i, a := range boxes[1:] {
			if a.x < 0 || a.y < 0 || a.x+a.w > width || a.y+a.h > height {
				t.Errorf("seed %d: box %+v is outside of %v × %v", seed, a, width, height)
			}
			for _, b := range boxes[2+i:] {
				if a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h {
					t.Errorf("seed %d: boxes %+v and %+v overlap", seed, a, b)
				}
			}
		}
		g := newSVGGraph(c, len(c.ByCentre))
		g.findLayers()
		for _, a := range g.arcs {
			if !a.back && g.nodes[a.from].layer >= g.nodes[a.to].layer {
				t.Errorf("seed %d: %s calls %s from below", seed, g.nodes[a.from].name, g.nodes[a.to].name)
			}
		}
	}
}

// Names from a log are text in a drawing, whatever they are; what is beyond the
// limit is drawn.
func TestGraphSVGOfHostileNames(t *testing.T) {
	hostile := []string{`</text><script>alert(1)</script>`, `"><a href="x">`, "a&b", "\x1b[31mred", "\x00nul", "line\nbreak", "\xff\xfe", "']]>", strings.Repeat("W", 5000), "\u202eright"}
	s, c := centreGraph(t, rand.New(rand.NewPCG(1, 12)), hostile)
	var b strings.Builder
	if err := GraphSVG(&b, s, c, printer.Options{}); err != nil {
		t.Fatal(err)
	}
	readSVG(t, b.String())
	if strings.ContainsAny(b.String(), "\x1b\x00\u202e") || strings.Contains(b.String(), "<script") {
		t.Errorf("not escaped:\n%s", b.String())
	}
	b.Reset()
	if err := GraphSVG(&b, s, c, printer.Options{Top: 3}); err != nil {
		t.Fatal(err)
	}
	if _, _, boxes, _ := readSVG(t, b.String()); len(boxes) != 4 || !strings.Contains(b.String(), "not drawn") {
		t.Errorf("%d boxes of the first three", len(boxes)-1)
	}
}
