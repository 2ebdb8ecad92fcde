package imports

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// These regular expressions are the grammar of lines: the specification of the
// hand-written parsers.
var (
	headerLine = regexp.MustCompile(`^(\S.*?)\s+(-?\d+)(?:/(-?\d+))?\s+(?:\[(\d+)\]\s+)?(\d+)\.(\d+):\s+(?:(\d+)\s+)?([^\s:]\S*?):(?:\s+(.*))?$`)
	frameLine  = regexp.MustCompile(`^\s+([0-9a-f]+)(?:\s+(.*))?$`)
	sourceLine = regexp.MustCompile(`^\s+(?:(\S.*):(\d+)|\S.*\[[0-9a-f]+\])$`)
)

// Any line is parsed as the regular expressions of its grammar say.
func FuzzScriptLine(f *testing.F) {
	for _, s := range strings.Split(script, "\n") {
		f.Add(s)
	}
	for _, s := range []string{
		"a 1 2 3 1.0: c:", "a 1/2 [3] 4.5: 6 c:u: 7 f (x)", "a b/1 -1/-1 [001]  12.5:  cycles:  ", "a 1 1.0: 2: 3:", "a 1 1.0: :c:", "a 1 1.0: c::", "a [1] [2] 1.0: c:",
		"  a.c:7", "  x[13]", "  x:y[13]", "  [13]", " 12", "\t12 f(int) (/lib/x (deleted))", "a 1 1.0:1 c:", "a 1 2 1.0: c: 3 4.0: d:", "a 1/ 1.0: c:", "a 1 1.: c:",
		"  a:1:2", "  a[1]:2", "  :1", "  a :1", "  a:", "  ab[1] ",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text, _, _ = strings.Cut(text, "\n") // as lines are
		h, ok := parseHeader(text)
		got := []string{text, h.comm, h.pid, h.tid, h.cpu, h.seconds, h.fraction, h.period, h.event, h.frame}
		if want := headerLine.FindStringSubmatch(text); ok != (want != nil) || ok && !slices.Equal(got, want) {
			t.Errorf("header %q: %q, want %q", text, got, want)
		}
		address, symbol, ok := parseFrame(text)
		if want := frameLine.FindStringSubmatch(text); ok != (want != nil) || ok && (address != want[1] || symbol != want[2]) {
			t.Errorf("frame %q: %q %q, want %q", text, address, symbol, want)
		}
		path, line, ok := parseSource(text)
		if want := sourceLine.FindStringSubmatch(text); ok != (want != nil) || ok && (path != want[1] || line != want[2]) {
			t.Errorf("source %q: %q %q, want %q", text, path, line, want)
		}
	})
}
