package printer

import (
	"io"

	"ccagent/internal/printable"
)

// JSON writes one document, indented, with everything that is not printable escaped: a
// terminal that shows it obeys nothing in it.
func JSON(w io.Writer, v any) error { return printable.JSON(w, v, " ") }
