// Package source shows a selection's costs next to text: the source of a file or binding,
// and the Core that GHC made of it.
//
// If a log has GHC's Core, [CoreOf] returns the Core bindings that contain an element's
// code. A sample belongs to one of them: the innermost that has Core, among its block's
// procedure and the procedures that enclose it or that it was lifted out of. In the text,
// the sample is shown at the notes that are its block's nearest causes there.
package source
