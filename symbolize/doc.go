// Package symbolize turns module addresses into what a Haskell programmer
// reads: the block of code, the procedure and source binding it belongs to,
// the source notes that caused it, and whose code it is.
//
// It works on files alone, after a capture: Run takes the addresses that were
// seen and the opened module files, and emits the log's symbol tables
// (eventlog.ModuleSymbols, File, FileText, Binding, Span, Block, Locations)
// for those addresses only. Package symbolize/worker does the same in a child
// process that holds no privilege, since the files may be crafted.
//
// A module's DWARF, info table map and symbol table are evidence (package
// evidence); the most detailed is asked first. Package naming names the
// procedures in it, sources finds source files, core the Core of the build, and binary
// says what a file is. The other packages read one format each.
//
// Addresses are module addresses (the ELF's own) throughout; lines and columns
// count from 1; end columns are one past the last. Rules about GHC's output
// come from GHC's own sources (compiler/GHC/HsToCore, GHC/Cmm/DebugBlock.hs,
// GHC/CmmToAsm/Dwarf, rts/) and Wortmann & Duke 2013, §4.4 and §5.
package symbolize
