package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Limits of a failure's summary.
const (
	summaryLines = 24
	summaryWidth = 400 // bytes of a line
)

// failure returns the lines that a failed test printed, without those of t.Log, and at most
// summaryLines: the first and the last ones. dir is the folder of the test's package.
//
// Go's output does not say whether a message is an error or only logged, so the source line
// that it names decides. A helper's messages name the helper's caller; they are all kept.
func failure(dir, printed string) []string {
	var lines []string
	logged := false
	for line := range strings.Lines(printed) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || bookkeeping.MatchString(line) {
			continue
		}
		if m := message.FindStringSubmatch(line); m != nil {
			logged = logs(filepath.Join(dir, m[1]), m[2])
		} else if !strings.HasPrefix(line, continued) {
			logged = false
		}
		if !logged {
			lines = append(lines, fmt.Sprintf("%.*s", summaryWidth, line))
		}
	}
	if n := len(lines); n > summaryLines {
		const half = summaryLines / 2
		left := fmt.Sprintf("(%d lines left out)", n-2*half)
		lines = append(append(lines[:half:half], left), lines[n-half:]...)
	}
	return lines
}

var (
	message = regexp.MustCompile(`^ +([\w.-]+\.go):(\d+): `)
	logCall = regexp.MustCompile(`\.(Log|Logf)\(`)
)

// continued begins the lines of a message after its first.
const continued = "        "

// logs reports whether a line of a source file calls t.Log or t.Logf. It is false for a file
// that cannot be read.
func logs(path, number string) bool {
	source, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	lines := strings.Split(string(source), "\n")
	n, err := strconv.Atoi(number)
	return err == nil && n >= 1 && n <= len(lines) && logCall.MatchString(lines[n-1])
}

// sourceDir returns the folder of one of this module's packages.
func sourceDir(pkg string) string {
	_, dir, _ := strings.Cut(pkg, "/")
	return filepath.FromSlash("./" + dir)
}
