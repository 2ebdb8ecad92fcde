// Package timeline computes figures over time: a selection's weight, the activity of
// capabilities and Haskell threads, garbage collections with their pauses, and the
// contents of the heap. All are in buckets of equal length, in ns since the capture
// began.
package timeline
