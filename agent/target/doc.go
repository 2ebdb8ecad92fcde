// Package target starts the program that is profiled, stopped at its first instruction,
// or takes hold of one that runs.
package target
