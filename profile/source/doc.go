// Package source shows a selection's costs beside text: the source of a file or binding,
// and the Core that GHC made of it.
//
// Where a log holds GHC's Core, [CoreOf] gives the bindings of it that an element's code
// is in. A sample belongs to one: the innermost of its block's procedure and those that
// enclose it which has Core, or the one that the procedure was lifted out of. In its
// text the sample is at the notes that are its block's nearest causes there.
package source
