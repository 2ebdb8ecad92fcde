// Package timeline shows what a log tells over time: a selection's weight, what its
// capabilities and Haskell threads did, collections and the pauses they are, and what
// the heap held. All are in buckets of equal length, in ns since the capture began.
package timeline
