// Package coderefs finds the code that refers to a procedure.
//
// GHC loses the source notes of some code: of functions that it lifts to the
// top late (-fstg-lift-lams), of specialisations of library code, of constants
// floated out. Where all that refers to such a procedure lies in one place, that
// is the place it came from. References are read from the machine code itself:
// the operands of jumps and of instructions that load an address (rel32, or the
// absolute 32 bits of position-dependent code), those that name the procedure's
// static closure, and the static reference tables beside info tables.
//
// Instructions are not decoded: any four bytes that follow what may be an
// opcode are taken for an operand. What is taken for one by chance makes a
// reference more, hence a claim less.
//
// Sources: GHC/CmmToAsm/X86/Ppr.hs (jumps and addresses), rts/include/rts/storage/InfoTables.h
// (the SRT field), rts/include/rts/storage/Closures.h (static closures begin with
// their info pointer).
package coderefs
