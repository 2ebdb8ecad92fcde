// Package cfi compiles a module's call frame information into rows for the
// unwinder.
package cfi
