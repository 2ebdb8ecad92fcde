package boundary

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// No screen imports another screen, so that each can be written and removed alone. Only
// commands import the reports that belong to no screen.
func TestScreensStandAlone(t *testing.T) {
	const screens = "ccagent/ui/screen/"
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "ccagent/ui/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := 0
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(p.ImportPath, screens) {
			seen++
		}
		for _, imp := range p.Imports {
			switch {
			case imp == "ccagent/ui/text":
				t.Errorf("%s imports ui/text, which is for commands", p.ImportPath)
			case strings.HasPrefix(p.ImportPath, screens) && strings.HasPrefix(imp, screens) && imp != screens+"pane":
				t.Errorf("%s imports another screen, %s: what both need belongs to ui/screen or ui/screen/pane", p.ImportPath, imp)
			}
		}
	}
	if seen < 7 {
		t.Errorf("go list named %d packages of screens", seen)
	}
}
