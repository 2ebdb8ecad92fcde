package text

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ccagent/internal/format"
	"ccagent/profile/pieces"
	"ccagent/ui/printer"
	"ccagent/ui/safe"
)

// Pieces is the report of the logs in a folder.
type Pieces struct {
	Dir      string
	Pieces   []pieces.Piece
	Problems []pieces.Problem
	Each     bool // a line for each piece, not for each process
}

// run is the pieces of one process.
type run struct {
	pieces.Piece
	pieces int
	states map[pieces.State]int
}

// runs groups pieces by process, in the order of their first pieces.
func runs(ps []pieces.Piece) []*run {
	type key struct {
		service, host, program, build string
		pid                           uint32
	}
	var order []*run
	of := make(map[key]*run)
	for _, p := range ps {
		k := key{p.Service, p.Host, p.Program, p.BuildID, p.PID}
		r := of[k]
		if r == nil {
			r = &run{Piece: p, states: make(map[pieces.State]int)}
			r.Bytes = 0
			of[k], order = r, append(order, r)
		}
		if p.End.After(r.End) {
			r.End = p.End
		}
		r.Bytes += p.Bytes
		r.pieces++
		r.states[p.State]++
	}
	slices.SortStableFunc(order, func(a, b *run) int {
		return cmp.Or(strings.Compare(a.Service, b.Service), strings.Compare(a.Host, b.Host), a.Start.Compare(b.Start))
	})
	return order
}

// Text implements printer.Report.
func (r Pieces) Text(w io.Writer, o printer.Options) error {
	p := newOut(w, o)
	rows := [][]string{{"service", "host", "pid", "program", "build", "from", "to", "logs", "size", ""}}
	row := func(x *run, name string) []string {
		return []string{x.Service, x.Host, fmt.Sprint(x.PID), name, x.BuildID[:min(8, len(x.BuildID))],
			x.Start.Format(time.DateTime), x.End.Format(time.DateTime), fmt.Sprint(x.pieces), format.Bytes(uint64(x.Bytes)), notes(x.states)}
	}
	if r.Each {
		for _, piece := range r.Pieces {
			rows = append(rows, row(&run{piece, 1, map[pieces.State]int{piece.State: 1}}, piece.Path))
		}
	} else {
		for _, x := range runs(r.Pieces) {
			rows = append(rows, row(x, filepath.Base(x.Program)))
		}
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i := range row {
			row[i] = safe.String(row[i])
			widths[i] = max(widths[i], safe.Width(row[i]))
		}
	}
	for i, row := range rows {
		var line strings.Builder
		for j, cell := range row {
			line.WriteString(printer.PadRight(cell, widths[j]+2))
		}
		if text := line.String(); i == 0 {
			p.Line(p.Faint(strings.TrimRight(text, " ")))
		} else {
			p.Line(text)
		}
	}
	for i := range r.Problems {
		if r.Problems[i].Begun {
			p.Line(safe.String("has just begun: " + r.Problems[i].Path))
		} else {
			p.Line(safe.String("cannot be read: " + r.Problems[i].Error()))
		}
	}
	return p.Flush()
}

// notes says what of some pieces is not whole.
func notes(states map[pieces.State]int) string {
	var parts []string
	for _, s := range []pieces.State{pieces.Growing, pieces.Cut} {
		if n := states[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

type pieceJSON struct {
	Path    string       `json:"path"`
	Service *string      `json:"service"`
	Host    *string      `json:"host"`
	Program *string      `json:"program"`
	PID     *uint32      `json:"pid"`
	BuildID *string      `json:"build_id"`
	GHC     *string      `json:"ghc"`
	Start   *string      `json:"start"`
	End     *string      `json:"end"`
	Bytes   int64        `json:"size_bytes"`
	State   pieces.State `json:"state"`
}

type pieceProblemJSON struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// JSON implements printer.Report.
func (r Pieces) JSON(w io.Writer, _ printer.Options) error {
	doc := struct {
		Dir      string             `json:"dir"`
		Pieces   []pieceJSON        `json:"pieces"`
		Problems []pieceProblemJSON `json:"problems"`
	}{r.Dir, []pieceJSON{}, []pieceProblemJSON{}}
	for i := range r.Pieces {
		p := &r.Pieces[i]
		doc.Pieces = append(doc.Pieces, pieceJSON{p.Path, printer.Known(p.Service), printer.Known(p.Host), printer.Known(p.Program), printer.Known(p.PID), printer.Known(p.BuildID), printer.Known(p.GHC),
			printer.If(!p.Start.IsZero(), p.Start.UTC().Format(time.RFC3339Nano)), printer.If(!p.End.IsZero(), p.End.UTC().Format(time.RFC3339Nano)), p.Bytes, p.State})
	}
	for i := range r.Problems {
		if p := &r.Problems[i]; p.Begun {
			doc.Pieces = append(doc.Pieces, pieceJSON{Path: p.Path, Service: printer.Known(p.Service), State: pieces.Growing})
		} else {
			doc.Problems = append(doc.Problems, pieceProblemJSON{p.Path, p.Err.Error()})
		}
	}
	return printer.JSON(w, doc)
}

// maxHoldings bounds the services that Holdings names.
const maxHoldings = 8

// Holdings says of which services some pieces are, and of what time.
func Holdings(ps []pieces.Piece) string {
	services := make(map[string]bool)
	from, to := ps[0].Start, ps[0].End
	for i := range ps {
		services[ps[i].Service] = true
		if ps[i].Start.Before(from) {
			from = ps[i].Start
		}
		if ps[i].End.After(to) {
			to = ps[i].End
		}
	}
	names := slices.Sorted(maps.Keys(services))
	if len(names) > maxHoldings {
		names = append(names[:maxHoldings], "…")
	}
	return fmt.Sprintf("%s, from %s to %s", strings.Join(names, ", "), from.Format(time.DateTime), to.Format(time.DateTime))
}
