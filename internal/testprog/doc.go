// Package testprog compiles the Haskell programs of testdata/programs for tests.
//
// A program is compiled once for each combination of its sources, options and
// compiler, and kept in the user's cache directory. A test that needs something
// the machine lacks is skipped through Skip with an *UnsupportedError, so that
// scripts/test can list what was not tested and why.
package testprog
