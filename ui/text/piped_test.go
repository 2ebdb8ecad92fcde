package text_test

import (
	"bytes"
	"strings"
	"testing"

	"ccagent/ui/internal/fixture"
	"ccagent/ui/printer"
	"ccagent/ui/safe"
	"ccagent/ui/text"
)

// What info and doctor print into a pipe is at most 80 columns wide, but where a word, such as a path, is
// wider, and no word is cut.
func TestPipedWidth(t *testing.T) {
	for _, p := range []fixture.Options{{Samples: 300}, {Samples: 100, Cut: true}} {
		p := fixture.Profile(t, p)
		for name, r := range map[string]printer.Report{"info": text.Info{Profile: p}, "doctor": text.Doctor{Profile: p}} {
			var piped, wide bytes.Buffer
			if err := r.Text(&piped, printer.Options{File: "x.eventlog"}); err != nil {
				t.Fatal(err)
			}
			if err := r.Text(&wide, printer.Options{File: "x.eventlog", Width: 1000}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(piped.String()) {
				line = strings.TrimRight(line, "\n")
				words := strings.Fields(line)
				if safe.Width(line) > 80 && len(words) > 1 && safe.Width(words[len(words)-1]) < 40 {
					t.Errorf("%s: %d columns: %s", name, safe.Width(line), line)
				}
			}
			if got, want := strings.Fields(piped.String()), strings.Fields(wide.String()); strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s: words differ:\n%s\nof\n%s", name, &piped, &wide)
			}
		}
	}
}
