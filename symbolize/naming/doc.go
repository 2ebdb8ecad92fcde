// Package naming gives procedures the names that programmers know them by, and says
// what source binding GHC made each of them from.
package naming
