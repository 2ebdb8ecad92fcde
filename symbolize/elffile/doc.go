// Package elffile reads the parts of an ELF file that a symboliser needs, from
// files that may have been crafted to harm it.
//
// Only 64-bit little-endian files are read further than their header: every
// machine this project profiles is one. No count, offset or size in the file
// is trusted: each is checked against the file's size and against a fixed
// limit before anything is read or allocated. Decompression stops at a limit
// the caller gives. Nothing is kept open: a File borrows its reader.
//
// Addresses are the file's own virtual addresses throughout.
//
// Format: System V gABI (ELF-64 object file format), Linux gABI extensions for
// .note.gnu.build-id, .gnu_debuglink and SHF_COMPRESSED.
package elffile
