// Package search counts the values that stand for non-determinism in functional-logic programs: the choices, variables, guards and
// failures that KiCS2's code makes (docs/curry.md).
//
// # Places
//
// Compiled code makes a value by writing the address of its constructor's info table into the heap, once for each value, behind the
// heap check. So the instructions that refer to the info table of such a constructor are all places where its values are made: the
// constructor's own function, the methods of its type's NonDet instance, and functions of the program that GHC has put the constructor into.
// Probes stand at all of them, and BPF counts their hits, by place. (A constant of the program is no value that was made.) Where such an address is used in
// another way than is known here, values may be made that are not counted, and the log says so.
//
// # Exact
//
// A hit costs microseconds. While all of them together cost no more than the budget allows, probes stay, and what is counted is exact: each
// sample stands for the hits of its place since the sample before. If each hit has a sample, so are the numbers by who called. Of each place the
// first samples in a second are of all hits, further ones of fewer and fewer.
// Where it is too dear the probes are taken out, and the log says up to when was counted; what is known then is what samples of allocation say.
package search
