// Package text holds the reports that are no screen's: metadata, diagnosis and the timeline,
// as plain text and as JSON.
package text

import (
	"io"

	"ccagent/ui/printer"
)

// out is a printer with what only these reports have.
type out struct{ *printer.Printer }

func newOut(w io.Writer, o printer.Options) out { return out{printer.New(w, o)} }
