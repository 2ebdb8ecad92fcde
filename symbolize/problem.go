package symbolize

import (
	"fmt"
	"path/filepath"
)

// Problem is what users should know of a file, or of the whole if File is empty, in words.
type Problem struct{ File, Reason string }

// Lines gives a line for each reason, in the order in which they came up, with the files
// that it is true of: a dynamically linked program has dozens, most with the same.
func Lines(problems []Problem) (lines []string) {
	files := map[string][]string{}
	var reasons []string
	for _, p := range problems {
		if _, known := files[p.Reason]; !known {
			reasons = append(reasons, p.Reason)
		}
		files[p.Reason] = append(files[p.Reason], p.File)
	}
	for _, reason := range reasons {
		of := files[reason]
		switch {
		case len(of) == 1 && of[0] == "":
			lines = append(lines, reason)
		case len(of) == 1:
			lines = append(lines, of[0]+": "+reason)
		case len(of) == 2:
			lines = append(lines, fmt.Sprintf("%s and %s: %s", of[0], of[1], reason))
		default:
			lines = append(lines, fmt.Sprintf("%s, %s and %d other files: %s", of[0], filepath.Base(of[1]), len(of)-2, reason))
		}
	}
	return lines
}
