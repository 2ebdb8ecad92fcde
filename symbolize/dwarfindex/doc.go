// Package dwarfindex reads GHC's DWARF into a flat index from addresses to
// blocks and from blocks to their causes.
//
// GHC describes a procedure as a DW_TAG_subprogram with a tree of
// DW_TAG_lexical_blocks, and puts the source notes that made a block below it,
// under a tag of its own (0x5b00). A block lies within another in the tree
// when its tick scope does; their code is disjoint. Procedures whose code came
// from inside another block name that block by DW_AT_ghc_tick_parent (0x2b20).
// Sources: GHC/CmmToAsm/Dwarf.hs, Dwarf/Types.hs, Dwarf/Constants.hs,
// GHC/Cmm/DebugBlock.hs; Wortmann & Duke 2013, §5.3.
//
// What the dialects do that DWARF forbids, and what is done here:
//
//   - Up to GHC 9.0 a procedure's range covers its first block only, so its
//     blocks lie outside it. Ranges are indexed one by one, whatever the tree.
//   - Linkage names come as attribute 0x2007 up to 9.0 and 0x6e from 9.2 on.
//   - A procedure's own notes (those of its first block) are not written to
//     .debug_info at all; .debug_line has the position of the best of them. It
//     is joined with the note that begins there, if any block has it.
//   - Blocks that were optimised out have no range and still carry context.
//   - Linkers leave the DWARF of code they dropped, at addresses near 0. A
//     procedure that does not begin in executable memory is dropped with its
//     blocks; its names and notes are kept, since inlined code refers to them.
//
// The reader visits .debug_info unit by unit, with one unit in memory at a
// time, and never trusts a length. Memory is bounded by Options.Memory.
package dwarfindex
