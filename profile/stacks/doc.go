// Package stacks computes views of a selection's stacks: call trees with callers first or
// inverted, the callers and callees of one function, folded lines, and single stacks.
//
// By default adjacent frames of one binding are merged into one frame: they are its
// pending case continuations or its direct recursion. Package profile applies the filter,
// which hides, merges and collapses frames.
package stacks
