// Package oracle walks the stack of a stopped Haskell thread independently of the BPF
// walker, to test that. It shares no code or table with it: frame sizes follow
// stack_frame_sizeW (rts/include/rts/storage/ClosureMacros.h in GHC), the whole stack is
// read, no budget limits it, and call-frame tables are interpreted directly from the ELF
// files.
//
// The result is a Truth, which can be written as text and read again: the golden stacks.
package oracle
