package symbolize

import "ccagent/symbolize/elffile"

// hasNotes reports whether .debug_info has a GHC source note in its first
// compilation units by GHC.
func hasNotes(f *elffile.File) bool { return false }
