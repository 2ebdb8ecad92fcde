// Package rts puts probes into the run-time system of a capture's first Haskell process, or of each
// process that has a log of its own, at GC, heap and thread scheduling events. Package rtsevents translates their records into the
// standard events of an eventlog. Probes that have exceeded their budget are removed until
// their token bucket has filled again.
package rts
