// Package centres attributes a selection's samples to cost centres that are chosen
// when the run is over.
//
// [Find] finds in a profile the centres that a [Set] of patterns names, and [Attribute]
// partitions what shares let overlap: each sample belongs to one of them, by the rules
// of Sansom & Peyton Jones (1997) or Morgan & Jarvis (1998) as far as a sampler can
// follow them. The weight for which it cannot, since a thunk does not tell who built
// it, is reported as forced. Package semantics specifies the rules.
package centres
