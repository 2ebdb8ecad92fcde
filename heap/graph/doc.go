// Package graph finds who retains what in a heap that was copied from a process.
//
// Analyse takes a Snapshot: the words of the heap's blocks, and the code and static data of the
// program's modules. A node is a closure of the heap; edges are the pointers that the garbage
// collector would follow (rts/sm/Scav.c), frames of stacks by their bitmaps. It starts from Roots
// that have names: CAFs, threads, stable pointers, weak pointers. A node's retained size is what
// would be freed without it: the bytes of the closures that it dominates (Lengauer and Tarjan, A
// fast algorithm for finding dominators in a flowgraph, 1979).
//
// Static closures are no nodes. Which CAFs are alive is found as the collector does, by the static
// reference tables of the code that the heap's closures have; then each of them is a root.
//
// Nodes have no Go objects of their own: a bit for each word of the heap says where closures
// begin, and all else is in arrays of 32 bits by node. The memory may hold anything: every length
// is checked against the words that there are, and pointers that lead to no closure are counted.
// Of what closures hold, nothing is in a Result but threads' numbers and labels.
package graph
