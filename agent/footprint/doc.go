// Package footprint divides the memory that a process has, as the kernel counts it (its resident set
// size), into what it is for.
//
// Blocks of the heap are divided by what their descriptors say, each only as far as its pages are in
// memory; all other mappings by what the kernel says of them. Each page is in one part at the most, so the sum of the
// parts is what is known. What is left of the kernel's figure is not accounted for.
package footprint
