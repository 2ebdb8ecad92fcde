// Package hssource finds the top-level declarations of Haskell source text, so
// that a stretch of it can be given the name of the binding it lies in.
//
// It is no parser: it reads the layout. What begins in a module's first column
// begins a declaration; what is indented belongs to the one before. That holds
// for all Haskell that people indent (Haskell 2010 report, §10.3), and for
// literate Haskell by its bird tracks or code blocks. Comments, pragmas, strings
// and preprocessor lines are skipped.
package hssource
