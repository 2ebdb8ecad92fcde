package centres

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/centres"
	"ccagent/ui/printer"
)

// svgNodes bounds the centres of a drawing: those with the largest inherited
// figures are drawn.
const svgNodes = 120

// Sizes of the drawing, in pixels. Text is set in a font whose characters are all
// as wide as svgChar, so that no font has to be measured.
const (
	svgChar   = 7
	svgPad    = 10
	svgHeight = 52
	svgGap    = 24  // between boxes of a layer
	svgLayer  = 110 // from one layer's top to the next
	svgName   = 36  // characters
)

// svgNode is a box. It stands in a layer below those that call it.
type svgNode struct {
	row   *centres.Row
	name  string
	layer int
	x, w  float64 // left edge and width
	order float64 // by which a layer is sorted
}

// svgArc is a line; back is set if it leads to a layer that is not below.
type svgArc struct {
	from, to int
	arc      *centres.Arc
	back     bool
}

type svgGraph struct {
	nodes  []svgNode
	arcs   []svgArc
	layers [][]int
	left   int // centres that are not drawn
}

// GraphSVG writes the call graph of cost centres as a drawing: what Graph writes,
// laid out in layers, callers above what they call. The figures are of ModeStacks or
// ModeExact.
func GraphSVG(w io.Writer, s *profile.Selection, c *centres.Costs, o printer.Options) error {
	g := newSVGGraph(c, o.Rows(len(c.ByCentre), svgNodes))
	g.findLayers()
	g.sortLayers()
	width, height := g.place()
	p := newOut(w, printer.Options{})
	p.Linef(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="monospace" font-size="11.6">`, width, height, width, height)
	sum := s.Summary()
	p.Linef("<title>%s</title>", xmlText("cost centres of "+sum.Event))
	p.Line(`<defs><marker id="head" markerUnits="userSpaceOnUse" markerWidth="11" markerHeight="10" refX="9" refY="5" orient="auto"><path d="M0,0 L10,5 L0,10 z" fill="#667"/></marker></defs>`)
	p.Linef(`<rect width="%.0f" height="%.0f" fill="#fff"/>`, width, height)
	for i := range g.arcs {
		g.drawArc(p, s, &g.arcs[i], width)
	}
	for i := range g.nodes {
		g.drawNode(p, s, &g.nodes[i])
	}
	if g.left > 0 {
		p.Linef(`<text x="%d" y="%.0f" fill="#667">%s</text>`, svgPad, height-8, xmlText(format.Plural(uint64(g.left), "centre")+" with smaller figures not drawn: --top N draws more"))
	}
	p.Line("</svg>")
	return p.Flush()
}

// newSVGGraph takes the first n centres by inherited figure, and the arcs among them.
func newSVGGraph(c *centres.Costs, n int) *svgGraph {
	g := &svgGraph{left: len(c.ByCentre) - n}
	index := make(map[*centres.Centre]int)
	for i := range c.ByCentre[:n] {
		r := &c.ByCentre[i]
		name := printer.Fit(r.Centre.Name, svgName)
		chars := max(utf8.RuneCountInString(name), 20)
		g.nodes = append(g.nodes, svgNode{row: r, name: name, w: float64(svgChar*chars + 2*svgPad)})
		index[r.Centre] = i
	}
	arcs := c.Arcs()
	for i := range arcs {
		from, ok1 := index[arcs[i].From]
		to, ok2 := index[arcs[i].To]
		if ok1 && ok2 {
			g.arcs = append(g.arcs, svgArc{from: from, to: to, arc: &arcs[i]})
		}
	}
	return g
}

// findLayers puts each centre below all that call it, but for arcs that close a
// circle: those found last, going along the heaviest first.
func (g *svgGraph) findLayers() {
	out := make([][]int, len(g.nodes)) // arcs by caller, heaviest first
	for i := range g.arcs {
		out[g.arcs[i].from] = append(out[g.arcs[i].from], i)
	}
	const onPath, done = 1, 2
	state := make([]int, len(g.nodes))
	type step struct{ node, next int }
	var order []int // callees before callers
	for start := range g.nodes {
		if state[start] != 0 {
			continue
		}
		path := []step{{node: start}}
		state[start] = onPath
		for len(path) > 0 {
			at := &path[len(path)-1]
			if at.next == len(out[at.node]) {
				state[at.node] = done
				order = append(order, at.node)
				path = path[:len(path)-1]
				continue
			}
			a := &g.arcs[out[at.node][at.next]]
			at.next++
			switch state[a.to] {
			case onPath:
				a.back = true
			case 0:
				state[a.to] = onPath
				path = append(path, step{node: a.to})
			}
		}
	}
	depth := 0
	for _, n := range slices.Backward(order) {
		for _, i := range out[n] {
			if a := &g.arcs[i]; !a.back {
				g.nodes[a.to].layer = max(g.nodes[a.to].layer, g.nodes[n].layer+1)
			}
		}
		depth = max(depth, g.nodes[n].layer)
	}
	g.layers = make([][]int, depth+1)
	for i := range g.nodes {
		g.layers[g.nodes[i].layer] = append(g.layers[g.nodes[i].layer], i)
	}
}

// sortLayers puts centres near what they are joined to, sweeping down and up.
func (g *svgGraph) sortLayers() {
	near := make([][]int, len(g.nodes))
	for _, a := range g.arcs {
		if !a.back {
			near[a.from] = append(near[a.from], a.to)
			near[a.to] = append(near[a.to], a.from)
		}
	}
	at := make([]float64, len(g.nodes)) // a centre's place in its layer, in 0..1
	number := func(layer []int) {
		for i, n := range layer {
			at[n] = (float64(i) + 0.5) / float64(len(layer))
		}
	}
	for _, l := range g.layers {
		number(l)
	}
	for sweep := range 6 {
		for i := range g.layers {
			l := g.layers[i]
			if sweep%2 == 1 {
				l = g.layers[len(g.layers)-1-i]
			}
			for _, n := range l {
				sum := at[n]
				for _, m := range near[n] {
					sum += at[m]
				}
				g.nodes[n].order = sum / float64(1+len(near[n]))
			}
			slices.SortStableFunc(l, func(a, b int) int { return cmp.Compare(g.nodes[a].order, g.nodes[b].order) })
			number(l)
		}
	}
}

// place sets the boxes in rows, each in the middle, and gives the drawing's size.
func (g *svgGraph) place() (width, height float64) {
	widths := make([]float64, len(g.layers))
	for i, l := range g.layers {
		for _, n := range l {
			widths[i] += g.nodes[n].w + svgGap
		}
		width = max(width, widths[i])
	}
	width += 2*svgPad + 60 // room for arcs that lead back
	for i, l := range g.layers {
		x := (width-60-widths[i])/2 + svgGap/2
		for _, n := range l {
			g.nodes[n].x = x
			x += g.nodes[n].w + svgGap
		}
	}
	return width, float64(len(g.layers)*svgLayer) + 20
}

func (n *svgNode) top() float64 { return float64(n.layer*svgLayer) + 14 }

func (g *svgGraph) drawNode(p out, s *profile.Selection, n *svgNode) {
	individual, inherited := s.Fraction(n.row.Individual), s.Fraction(n.row.Inherited)
	// From white to red by what the centre itself costs.
	fade := 255 - int(min(individual*2, 1)*140)
	style := ""
	if n.row.Centre.Pseudo {
		style = ` stroke-dasharray="4 2"`
	}
	p.Linef(`<g><title>%s</title><rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="4" fill="#ff%02x%02x" stroke="#445" stroke-width="%.1f"%s/>`,
		xmlText(printer.Fit(n.row.Centre.Name, 0)), n.x, n.top(), n.w, svgHeight, fade, fade, 1+2*inherited, style)
	middle := n.x + n.w/2
	p.Linef(`<text x="%.1f" y="%.1f" text-anchor="middle" font-weight="bold">%s</text>`, middle, n.top()+17, xmlText(n.name))
	p.Linef(`<text x="%.1f" y="%.1f" text-anchor="middle">%s individual</text>`, middle, n.top()+31, xmlText(format.Percent(individual)))
	p.Linef(`<text x="%.1f" y="%.1f" text-anchor="middle">%s inherited</text></g>`, middle, n.top()+45, xmlText(format.Percent(inherited)))
}

func (g *svgGraph) drawArc(p out, s *profile.Selection, a *svgArc, width float64) {
	from, to := &g.nodes[a.from], &g.nodes[a.to]
	line := 1 + 4*s.Fraction(a.arc.Weight)
	title := xmlText(printer.Fit(from.row.Centre.Name, 0) + " → " + printer.Fit(to.row.Centre.Name, 0) + ": " + format.Plural(uint64(a.arc.Stacks), "stack") + ", " + format.Percent(s.Fraction(a.arc.Weight)))
	x1, y1, x2, y2 := from.x+from.w/2, from.top()+svgHeight, to.x+to.w/2, to.top()
	path, dash := fmt.Sprintf("M%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f", x1, y1, x1, y1+30, x2, y2-30, x2, y2), ""
	tx, ty := (x1+x2)/2, (y1+y2)/2
	if a.back {
		// Around the right side.
		edge := width - svgPad
		x1, y1, x2, y2 = from.x+from.w, from.top()+svgHeight/2, to.x+to.w, to.top()+svgHeight/2
		path = fmt.Sprintf("M%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f", x1, y1, edge, y1, edge, y2, x2, y2)
		dash = ` stroke-dasharray="5 3"`
		tx, ty = (x1+x2)/8+edge*3/4, (y1+y2)/2
	}
	p.Linef(`<g><title>%s</title><path d="%s" fill="none" stroke="#667" stroke-width="%.1f" marker-end="url(#head)"%s/>`, title, path, line, dash)
	p.Linef(`<text x="%.1f" y="%.1f" fill="#667" font-size="10" paint-order="stroke" stroke="#fff" stroke-width="3">%d</text></g>`, tx+4, ty, a.arc.Stacks)
}

// xmlText escapes text for SVG.
func xmlText(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		return "" // a Builder takes everything
	}
	return b.String()
}
