// Package stacks shows a selection's stacks: as call trees, callers first or inverted,
// as the callers and callees of one function, folded into lines, and one by one.
//
// Neighbouring frames of one binding are one frame, unless asked otherwise: they are its
// pending case continuations or its direct recursion. What a stack is made of, after the
// filter has hidden, merged and collapsed, package profile decides.
package stacks
