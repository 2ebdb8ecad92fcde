// Package cfi compiles a module's call frame information into rows for the
// unwinder: at which address, where the caller's frame is and what was saved.
//
// # The table
//
// A Table has rows, sorted by address, and the distinct rules that they name. A
// row takes 8 bytes and holds up to the next row's address. A rule takes 32 and
// has room for what a C frame needs: how the canonical frame address (CFA) is
// found, and where the return address and each callee-saved register lies below
// it. C libraries have a few hundred rules; saving fewer registers would fit
// rows with their rules into 8 bytes, but rbp and r13 are what Haskell is walked
// by, and the others what C frames are found by in between. Rows of KindNone end
// ranges, except where only alignment or an info table follows.
//
// Addresses are the module's own. A Table is immutable.
//
// # C code
//
// Rows come from .eh_frame, and from .debug_frame where that has nothing to say
// (DWARF 4, 6.4; Linux Standard Base, "DWARF Extensions"). Expressions are
// evaluated symbolically (expr.go). All rows of the C, maths, GMP and dynamic
// linker's libraries of Debian 12 have a form as a Rule but five of libc and one
// of ld.so: there the return address is in a register. StgRun's two rows are wrong while
// it saves and restores registers; there rsp is followed through its code (stgrun.go).
//
// # Haskell code: GHC's own rows
//
// GHC (≥ 7.10, -g, x86-64) describes Haskell code in .debug_frame with CFA =
// Sp + n; the word at the CFA, not below it, is the return address, which is the
// caller's info pointer. So the caller's Sp is the CFA (KindHaskell). Its rows
// have these faults (GHC.CmmToAsm.Dwarf, GHC.Cmm.DebugBlock):
//
//   - Ranges. GHC ≤ 9.0 ends an FDE's range after the procedure's first block
//     while its rows go on. If any row of the file lies beyond its range, all of
//     GHC's ranges are extended to where the next FDE, symbol or section is.
//   - Common information. An FDE names the start of its object's section, which no
//     relocation moves when objects are linked: the first object's, of C code perhaps (musl's
//     start files). It is the last one before the FDE.
//   - Info offset. What has an info table begins one byte early: harmless, as
//     that byte is never executed.
//   - Operands. The "_sf" instructions' operands are not divided by the data
//     alignment factor: they are taken as bytes.
//   - C calls. A row about rsp alone, around a call of C code whose arguments
//     or alignment move rsp, puts Sp's rule back to Sp + 0 (addDefaultUnwindings).
//     Rows that say anything of rsp keep the rule before. The row after the last
//     of them is always there and is right.
//   - Late rows. A continuation's row begins after the instructions that reload
//     its variables; these get the row of whatever code was laid out before. The
//     instruction at a continuation's start is where control returns to: in some
//     programs 2 % of the executed instructions with rows have wrong ones.
//   - Update frames. Once a thunk's code has pushed its update frame, the rows
//     say that the caller is beyond it: the update frame would be missing.
//
// The first five are repaired while reading. The last two, and code without
// rows (distributions' libraries are built without -g), need the code itself.
//
// # Rows from code
//
// STG code moves Sp by constants, so the distance from Sp to the caller's frame
// follows from where it is known (Limits.Instructions):
//
//   - a thunk's or constructor's entry: 0;
//   - a continuation's: the size of its frame, from its info table;
//   - a function's: 0 if its arguments fit into registers. If not, the code
//     shows it: it returns with Sp at the caller's frame, and a frame that it
//     pushes ends where the caller's begins (a saved call's size is a constant
//     that is stored before);
//   - an update frame being stored: the thunk's code goes on with it as caller.
//
// Info tables are found by what points at them: data, symbols, and constants in
// code; they are recognised by their type. Code is followed through jumps within
// a procedure and through jump tables, never into another procedure. Code whose
// entry has neither an info table nor such instructions (some of the RTS's primops), and code after Sp was moved by a variable, gets no row: there a
// scan from Sp for the first return frame is right. C code with frame
// information of its own is left alone. Where both exist, rows from code go
// before GHC's: single-stepped programs (live_linux_test.go; GHC 9.0, 9.6 and
// 9.10, -O0, -O2, -prof, stripped) showed no wrong one, and they cover 98 % of
// the bytes of such programs' Haskell code.
//
// This needs tables next to code, and the machine's instruction set: x86-64 so
// far. On arm64, where GHC emits no call frame information at all, C frames are
// compiled and Haskell code has no rows.
//
// # Pages
//
// Large programs have a hundred megabytes of code, which takes seconds to follow, and run little
// of it. OpenPages reads the frame sections, which is done at once, and gives rows for Haskell code
// for pages that are asked for. A page is followed with some code around it. What points into it from
// code that is not is found in other ways: four bytes of the code nearby that are an entry's address, and info tables
// that lie where a procedure ends. Info tables elsewhere are read where code
// refers to them, so the distances are those that the whole would give. Of pandoc's code 99.2 % of the bytes have what
// Compile gives; 0.6 % have no rule, and where both differ (0.1 %) mostly Compile guesses in
// what it takes for one procedure.
//
// # Hostile files
//
// Nothing here panics, and lengths are checked against the bytes that are there.
// Work is proportional to the bytes of the sections and of the code, which
// Limits bound. A malformed entry is left out and counted; the first is kept in
// Stats. Entries that overlap give a table that is well-formed, if meaningless.
package cfi
