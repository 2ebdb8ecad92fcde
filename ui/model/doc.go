// Package model computes what is on screen: a [Query] asks, an [Engine] answers with [Data]
// by pure queries on an immutable profile. It knows what all screens share; what one screen
// shows besides is that screen's [Part]. An engine remembers its latest answers, so that
// undoing a transform or coming back to a file costs nothing.
package model
