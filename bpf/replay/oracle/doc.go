// Package oracle walks the stack of a stopped Haskell thread a second way, to
// hold the BPF walker against. It shares no code or table with it: frame sizes
// are those of stack_frame_sizeW (rts/include/rts/storage/ClosureMacros.h in
// GHC), the whole of a stack is read, nothing is bounded by a budget, and
// call-frame tables are interpreted as they stand in the ELF files.
//
// What it finds is a Truth, which can be written as text and read again: the
// golden stacks.
package oracle
