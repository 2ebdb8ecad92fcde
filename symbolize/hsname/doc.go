// Package hsname reads the names that GHC gives to code: it undoes the
// Z-encoding, splits linkage names into package, module and name, and says in
// words what GHC made of which source binding.
//
// Rules: GHC/Utils/Encoding.hs (Z-encoding), GHC/Cmm/CLabel.hs (linkage names
// and their suffixes), GHC/Types/Name/Occurrence.hs (names of what GHC makes:
// $w, $s, $f, $c …).
package hsname
