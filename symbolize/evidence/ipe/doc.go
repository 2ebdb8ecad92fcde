// Package ipe reads GHC's info table map (-finfo-table-map, GHC ≥ 9.2): for
// each info table its source span, the binding it is of, its type and the kind
// of its closures.
//
// Each module has a buffer of entries in its data, which its initialiser hands
// to the run-time system; a symbol that ends in _ipe_buf names it. The layouts,
// in words of 64 bits unless stated otherwise (rts/include/rts/IPE.h):
//
//	9.2         a symbol an entry: info, 6 × char*, link
//	9.4         next, strings, count, entries; an entry is info and 6 × u32 into strings
//	9.6         the same; an entry is info and 8 × u32, file and span apart
//	9.8         next, compressed, count, tables, entries, their size, strings,
//	            their size; an entry is 8 × u32
//	9.10 – 9.14 the same, with unit and module (u32 each) at the end; an entry is 6 × u32
//
// From 9.8 on entries and strings may each be a zstd frame. Pointers in
// position-independent files are found by their relocations.
package ipe
