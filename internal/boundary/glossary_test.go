package boundary

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every row of the glossary has a unique term, a meaning, and places that exist.
func TestGlossary(t *testing.T) {
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "docs", "glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	place := regexp.MustCompile("`([^`]+)`")
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) == 1 || strings.HasPrefix(cells[0], "---") || strings.HasPrefix(cells[0], " Term") {
			continue
		}
		term := strings.TrimSpace(cells[0])
		if len(cells) != 3 || strings.TrimSpace(cells[1]) == "" {
			t.Errorf("the row of %q is not a term, a meaning and places", term)
			continue
		}
		if seen[term] {
			t.Errorf("%q has more than one meaning", term)
		}
		seen[term] = true
		for _, m := range place.FindAllStringSubmatch(cells[2], -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%q is said to be in %s, which is not there: change docs/glossary.md", term, m[1])
			}
		}
	}
	if len(seen) == 0 {
		t.Error("the glossary has no terms")
	}
}
