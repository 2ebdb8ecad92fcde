// Package modulecode finds which Haskell module code is of in files without symbols.
//
// GHC gives each module one object file, and linkers put object files one after the other: into
// the code, and in the same order into the data. Every module that GHC compiles has a static
// closure with its name and its package's ($trModule, for Typeable), each of its types one that
// refers to that (TyCon), and each constructor an info table with its full name. These are marks
// in the data and in the code. Static closures of functions and top-level thunks begin with their
// info pointers, so they say which place in the code corresponds to which in the data. Between two
// marks of one module all code is that module's; between marks of two it is of one of them, or of
// a module between them that has no mark. Constructors' info tables come last in a module.
//
// Nothing is claimed of files whose functions and static closures do not lie in the same order.
//
// Sources: GHC/Tc/Instance/Typeable.hs ($trModule and TyCon), GHC/Cmm/Info.hs (the fields of info
// tables), rts/include/rts/storage/InfoTables.h (con_desc).
package modulecode
