package boundary

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every promise in docs/security.md names tests, and they exist in the packages it names.
func TestSecurityPromisesHaveTests(t *testing.T) {
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "## Promises")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("docs/security.md has no section of promises")
	}
	words := regexp.MustCompile("`[a-z0-9/]+`|(?:Test|Fuzz)\\w+")
	promises := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[1]) == "Promise" {
			continue
		}
		promises++
		dir, tests := "", 0
		for _, w := range words.FindAllString(cells[2], -1) {
			if strings.HasPrefix(w, "`") {
				dir = strings.Trim(w, "`")
				continue
			}
			tests++
			if !hasTest(t, filepath.Join(root, dir), w) {
				t.Errorf("%s has no %s, which is to hold the promise %q", dir, w, strings.TrimSpace(cells[1]))
			}
		}
		if tests == 0 {
			t.Errorf("no test holds the promise %q", strings.TrimSpace(cells[1]))
		}
	}
	if promises < 10 {
		t.Errorf("%d promises were read", promises)
	}
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "func "+name+"(t *testing.T)") || strings.Contains(string(text), "func "+name+"(f *testing.F)") {
			return true
		}
	}
	return false
}
