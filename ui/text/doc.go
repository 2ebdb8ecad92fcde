// Package text prints the views of a profile as plain text and as JSON: the
// twins of the viewer's screens, for pipes and scripts.
//
// Every function writes one whole document. Text comes from names, paths and
// sources that the profiled program chose, so all of it passes through package
// safe. JSON keeps the names as they are and escapes what is not printable.
//
// The fields of the JSON documents are a contract with scripts: fields may be
// added, none may change.
package text
