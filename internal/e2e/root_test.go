package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// The sources of a program with other mounts than ccagent's are read below the program's
// root directory, not at the same path below ours.
func TestSourcesAsTheProgramSeesThem(t *testing.T) {
	exe := testprog.Build(t, "spin31", testprog.Options{})
	src := testprog.Source(t, "spin31")
	text, err := os.ReadFile(filepath.Join(src, "Main.hs"))
	if err != nil {
		t.Fatal(err)
	}
	built, err := os.Stat(exe)
	if err != nil {
		t.Fatal(err)
	}
	other := sharedDir(t, 0o755)
	path := filepath.Join(other, "Main.hs")
	if err := os.WriteFile(path, append(text, "-- below another root\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, built.ModTime(), built.ModTime()); err != nil {
		t.Fatal(err)
	}
	log, _ := record(t, nil, "unshare", "--mount", "sh", "-c", `mount --bind "$0" "$1" && exec "$2" 5000`, other, src, exe)
	var doc struct {
		Lines []struct {
			Text string `json:"text"`
		} `json:"lines"`
	}
	view(t, &doc, "source", log, "Main.hs")
	for _, l := range doc.Lines {
		if strings.Contains(l.Text, "below another root") {
			return
		}
	}
	t.Errorf("the source is not that which the program sees: %d lines", len(doc.Lines))
}
