// Package binary tells what an ELF file is before any of its code is resolved: what
// compiled it, which release and way of GHC, what evidence of its code it holds, and where
// its separate debug file lies.
package binary
