// Package rtsites finds the sites in GHC's run-time system, the instructions at which probes
// report GC and thread events and sample allocation, and the variables that the probes read.
//
// A probed instruction that the kernel can emulate (on x86-64 call, jmp, jcc, push; on arm64 branches
// and adr) costs about 0.5 µs a hit on x86-64; any other is copied elsewhere and single-stepped, which
// costs about 9 µs. So a C function is probed where it is called, and where it has callers
// that are not known, at the first instruction of its prologue that can be emulated
// and before which no argument has changed. The names are the RTS's own, from 8.10 to
// 9.14; they are local symbols, so a binary without .symtab has no sites.
//
// Code is decoded by a machine, x86 or arm64, which also knows the few patterns of registers that matter.
package rtsites
