// Package conflicts says which variables make STM transactions fail, and who writes them, of the attempts that were sampled
// when they ended (eventlog.TransactionVariables).
//
// A variable has no name. It is known by the code that touches it and its place among the variables that this touches, and by
// its address. Collections move variables, so one may be under several addresses; and one place may stand for
// many variables, such as those of a table's entries.
package conflicts

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/interval"
)

// Code is the code of a transaction.
type Code struct {
	Name, Module string
	File         string // empty if it is not known
	Line         uint32
}

// Share is a part of the failed attempts, with its 95 % interval.
type Share struct{ Value, Low, High float64 }

// Variable is one address of a process.
type Variable struct {
	At
	Share Share
}

// At is an address of a process.
type At struct {
	PID     uint32
	Address uint64
}

// Writer is code that wrote variables, with its part of the sampled attempts that did.
type Writer struct {
	Code
	Share float64
}

// Place is the n-th variable that a transaction's code touches, from 1, among the last 16 of an attempt.
type Place struct {
	Code
	Place int
	// Share is the part of all failed attempts that are this code's, and in which this variable had changed.
	Share Share
	// Addresses are those it was at, the most frequent first.
	Addresses []Variable
	Writers   []Writer // of these addresses, the most frequent first, at most mostWriters
}

// Conflicts is what is known of a log's failed attempts.
type Conflicts struct {
	Samples int     // failed attempts that were sampled
	Failed  float64 // for how many they stand
	Known   Share   // the part of them in which a variable was found to have changed
	Places  []Place // with most attempts first
	// Variables are all addresses, whatever code touched them.
	Variables []Variable
}

type place struct {
	code  Code
	place uint8
}

// sums are weights of failed attempts, and of their squares.
type sums struct{ weight, square float64 }

func (s *sums) add(w float64) {
	s.weight += w
	s.square += w * w
}

// mostWriters is how many writers of an address, and of a place, are kept: those that wrote most often.
const mostWriters = 16

// Of finds the conflicts of a profile; nil if no failed attempt was sampled.
func Of(p *profile.Profile) *Conflicts {
	var all, known sums
	c := &Conflicts{}
	places, variables := map[place]float64{}, map[At]float64{}
	at := map[place]map[At]float64{}
	wrote := map[At]map[Code]float64{}
	names := naming{p: p, of: map[uint32]Code{}}
	for i := range p.Attempts {
		a := &p.Attempts[i]
		w := float64(a.Attempts)
		code := names.code(a.Node)
		if a.End == eventlog.TransactionFailed {
			c.Samples++
			all.add(w)
			if len(a.Variables) > 0 {
				known.add(w)
			}
		}
		for _, v := range a.Variables {
			address := At{a.PID, v.Address}
			if a.End != eventlog.TransactionFailed {
				add(wrote, address, code, w)
				continue
			}
			k := place{code, v.Place}
			places[k] += w
			variables[address] += w
			add(at, k, address, w)
		}
	}
	if c.Samples == 0 || all.weight == 0 {
		return nil
	}
	effective := all.weight * all.weight / all.square
	share := func(w float64) Share {
		low, high := interval.Binomial(w/all.weight*effective, effective)
		return Share{w / all.weight, low, high}
	}
	list := func(weights map[At]float64) []Variable {
		out := make([]Variable, 0, len(weights))
		for address, w := range weights {
			out = append(out, Variable{address, share(w)})
		}
		slices.SortFunc(out, func(a, b Variable) int {
			return cmp.Or(cmp.Compare(b.Share.Value, a.Share.Value), cmp.Compare(a.PID, b.PID), cmp.Compare(a.Address, b.Address))
		})
		return out
	}
	c.Failed, c.Known, c.Variables = all.weight, share(known.weight), list(variables)
	writers := make(map[At][]Writer, len(wrote)) // with weights in place of shares
	for address, codes := range wrote {
		writers[address] = mostOf(codes)
	}
	for k, w := range places {
		row := Place{Code: k.code, Place: int(k.place) + 1, Share: share(w), Addresses: list(at[k])}
		codes, total := map[Code]float64{}, 0.0
		for _, v := range row.Addresses {
			for _, x := range writers[v.At] {
				codes[x.Code] += x.Share
				total += x.Share
			}
		}
		row.Writers = mostOf(codes)
		for i := range row.Writers {
			row.Writers[i].Share /= total
		}
		c.Places = append(c.Places, row)
	}
	slices.SortFunc(c.Places, func(a, b Place) int {
		return cmp.Or(cmp.Compare(b.Share.Value, a.Share.Value), compare(a.Code, b.Code), cmp.Compare(a.Place, b.Place))
	})
	return c
}

// mostOf lists the codes with most weight.
func mostOf(codes map[Code]float64) []Writer {
	out := make([]Writer, 0, len(codes))
	for code, n := range codes {
		out = append(out, Writer{code, n})
	}
	slices.SortFunc(out, func(a, b Writer) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), compare(a.Code, b.Code))
	})
	return slices.Clone(out[:min(len(out), mostWriters)])
}

func add[K, L comparable](m map[K]map[L]float64, k K, l L, w float64) {
	if m[k] == nil {
		m[k] = map[L]float64{}
	}
	m[k][l] += w
}

func compare(a, b Code) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
}

// naming names the code of attempts, and remembers it of each node on the way.
type naming struct {
	p  *profile.Profile
	of map[uint32]Code
}

// code is the code that an attempt's stack names: the first of the program's own on it, else the first at all.
func (n *naming) code(node uint32) Code {
	var way []uint32
	var out Code
	for at := node; at != 0; at = n.p.Nodes.Parent[at] {
		c, known := n.of[at]
		if known {
			out = c
			break
		}
		way = append(way, at)
		if own := n.frame(at); own.File != "" {
			break // whatever calls it
		}
	}
	for _, at := range slices.Backward(way) {
		if own := n.frame(at); own.File != "" || out.File == "" && own.Name != "" {
			out = own
		}
		n.of[at] = out
	}
	return out
}

// frame is the Haskell code of a frame; none of other frames.
func (n *naming) frame(node uint32) (c Code) {
	p := n.p
	id := columns.PlaceID(p.Nodes.Place[node])
	if k := p.Nodes.Kind[node]; columns.Structural(k) || k == eventlog.FrameSkipped || k == eventlog.FrameTransaction ||
		p.Locations[id].Category != eventlog.CategoryHaskell {
		return c
	}
	f := p.FrameOf(id)
	c = Code{Name: f.Name, Module: f.Module}
	if file, line := p.Position(id); file != 0 {
		c.File, c.Line = p.Symbols.Files[file].Path, line
	}
	return c
}
