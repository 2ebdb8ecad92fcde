package closures

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/curry"
	sure "ccagent/profile/interval"
)

// Known says how a number is known.
type Known string

const (
	Exact     Known = "exact"     // the program counted it
	AtLeast   Known = "at least"  // counted, but for what was made before there were probes
	Sampled   Known = "sampled"   // a sampled share of what is exact, or of sampled blocks
	Estimated Known = "estimated" // a product of two that are sampled
)

// Made is how many values of a constructor that stands for non-determinism were made for a function of a functional-logic program.
type Made struct {
	profile.Maker
	Count, Low, High float64 // with its 95 % interval
	// Effective is the number of independent samples that would say the function's share as exactly.
	Effective float64
	Known     Known
}

// Counted returns how many values of a row's constructor the functions that make it have made, as a program compiled with -ticky
// counts the bytes that their code allocates: exact. What GHC has put into other functions is not among them. 0 if nothing was
// counted, or bytes, the selection of samples of allocation, is of a part of the log.
func (r *Row) Counted(bytes *profile.Selection) uint64 {
	p := bytes.Profile
	if r.Role == curry.Value || r.Mean == 0 || len(p.Ticky) == 0 || bytes.Samples < p.Select(profile.Filter{}.WithEvent(bytes.Event)).Samples {
		return 0
	}
	sum := 0.0
	for i := range p.Ticky {
		c := &p.Ticky[i]
		module, _, _ := c.Source()
		if module != r.haskell {
			continue
		}
		symbol, _, _ := strings.Cut(c.Name, "{")
		if constructor, _, ok := curry.Makes(strings.TrimPrefix(symbol, module+".")); ok && r.Name == r.Module+"."+constructor {
			sum += float64(c.Allocs)
		}
	}
	return uint64(math.Round(sum / r.Mean))
}

// ByFunction divides the constructors of rows among the functions that they were made for: by the shares that samples of allocation say,
// in the code that makes them. bytes is the selection of these. Most are first.
//
// Where the program has counted what that code made, a function has its share of that. Elsewhere there are two estimates of
// the whole, by sampled blocks and by the bytes of that code's samples. They differ where GHC put constructors into functions of the
// program, and where samples, which are taken as blocks become full, fall in step with a loop that allocates equally much in
// each turn. The second counts, as far as blocks allow it: the lesser of both would be too low on average. A function's interval spans both.
func ByFunction(rows []Row, bytes *profile.Selection) []Made {
	makers := bytes.Makers()
	batched := bytes.Batched()
	var out []Made
	for i := range rows {
		r := &rows[i]
		if r.Role == curry.Value || r.Mean == 0 {
			continue
		}
		var mine []profile.Maker
		var all []columns.SiteID
		for _, m := range makers {
			if m.Constructor == r.Name {
				mine, all = append(mine, m), append(all, m.Sites...)
			}
		}
		if len(mine) == 0 {
			continue
		}
		var whole sure.Whole
		batched.Sum(&whole.Part, all)
		_, low, high := r.Count(bytes.Total)
		known, off, count := Estimated, 1.0, 0.0
		if n := float64(r.Counted(bytes)); n > 0 {
			count, low, high, known = n, n, n, Sampled
			if whole.Weight > 0 {
				off = whole.Weight / (n * r.Mean)
			}
		} else {
			in := batched.Share(&whole.Part)
			each := float64(bytes.Total) / r.Mean
			most := high
			low, high = min(low, in.Low*each), max(high, in.High*each)
			count = min(most, whole.Weight/r.Mean)
		}
		if whole.Weight == 0 {
			continue
		}
		sites := make([][]columns.SiteID, len(mine))
		for j := range mine {
			sites[j] = mine[j].Sites
		}
		size, of := bytes.Clusters(sites)
		in := make([]float64, len(size)) // of each cluster, what is in the code that makes the constructor
		for _, x := range of {
			for j, w := range x {
				in[j] += w
			}
		}
		for j, m := range mine {
			var p sure.Part
			batched.Sum(&p, m.Sites)
			share, in := p.Weight/whole.Weight, sure.Clusters(of[j], in, size, off)
			out = append(out, Made{m, count * share, low * in.Low, high * in.High, in.Effective, known})
		}
	}
	slices.SortStableFunc(out, func(a, b Made) int { return cmp.Compare(b.Count, a.Count) })
	return out
}
