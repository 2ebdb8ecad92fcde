// Package coredump reads the Core that GHC writes with -ddump-simpl
// -ddump-to-file: which top-level bindings a dump holds, and over which part of
// a binding's text each of its source notes scopes.
//
// It reads dumps of GHC 8.10 to 9.12, with and without -dsuppress-all. A dump
// is text for people, without a grammar of its own; what is relied upon is how
// GHC's pretty printer lays it out (GHC/Core/Ppr.hs): top-level bindings begin in
// the first column, and what a tick scopes over stands after it on the same
// line or, where that does not fit, beneath it in the same column.
//
// Text may be crafted: time and memory are linear in its size. Lines and
// columns count from 1; columns count characters, and end columns are one past
// the last.
package coredump
