// Package centres attributes a selection's samples to cost centres that are chosen after
// the run.
//
// [Find] finds the centres in a profile that a [Set] of patterns names. [Attribute]
// partitions the samples: unlike in shares, each sample belongs to exactly one centre, by
// the rules of Sansom & Peyton Jones (1997) or Morgan & Jarvis (1998) as far as sampling
// can follow them. It cannot where cost arises in a thunk, because a thunk does not
// record which code built it; that weight is reported as forced. Package semantics
// specifies the rules.
package centres
