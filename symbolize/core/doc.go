// Package core finds the Core that a build dumped and joins it to the procedures of a
// program.
package core
