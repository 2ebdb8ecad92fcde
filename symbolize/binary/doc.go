// Package binary identifies ELF files before any of their code is resolved: what
// compiled it, which release and way of GHC, what evidence of its code it holds, and where
// its separate debug file lies.
package binary
