// Package retained analyses a copied heap in a confined child process.
//
// What was copied may hold anything, and what a module's file says of it too. So the parent
// gives the copy and the modules' files to a child of internal/sandbox, which runs package
// heap/graph on them, and checks what it answers. The copy is memory without a name, which parent
// and child share; it is gone when both have closed it.
package retained
