package printer

import (
	"io"

	"ccagent/internal/printable"
)

// JSON writes one document, indented, with everything that is not printable escaped: a
// terminal that shows it obeys nothing in it.
func JSON(w io.Writer, v any) error { return printable.JSON(w, v, " ") }

// Known returns a pointer to v for a field of a JSON document, or nil, which is written as null,
// where v is its type's zero value: for fields in which that would not be a figure or a text but
// mean that nothing is known, or that there is none.
func Known[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// If is a pointer to v where it is known, whatever it is, and else nil.
func If[T any](known bool, v T) *T {
	if !known {
		return nil
	}
	return &v
}
