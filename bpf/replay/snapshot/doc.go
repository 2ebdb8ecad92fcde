// Package snapshot is the file format of snapshots of interrupted Haskell threads: the
// registers, and as much of the process's memory as a walk of the stack needs.
//
// Numbers are unsigned LEB128 varints, a string is its length and its bytes, a list its
// length and its elements:
//
//	"STGSNAP\x01"
//	arch, ghc, flags            strings "x86" or "arm64", "9.0.2"; 1 threaded, 2 profiled
//	comment                     string
//	registers                   list; the order of struct regs in bpf/c/arch.h
//	text                        2 × (lo, hi − lo): where info tables lie
//	task                        the RTS's Task of the OS thread, 0 if none is known
//	memory                      list of (gap to the range before, length, bytes)
//	rows                        list of unwinding rows: see Row
//	names                       list of (distance from the name before, string)
//
// The version is the magic's last byte. All addresses are the process's own.
package snapshot
