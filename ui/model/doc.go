// Package model turns what is on screen (a [Need]) into what to draw ([Data])
// by pure queries on an immutable profile. An [Engine] remembers the latest
// answers, so that undoing a transform or coming back to a file costs nothing.
package model
