package restriction

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLockdown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lockdown")
	for text, want := range map[string]string{
		"[none] integrity confidentiality\n": "none",
		"none [integrity] confidentiality\n": "integrity",
		"none integrity [confidentiality]\n": "confidentiality",
		"":                                   "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := lockdown(path); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := lockdown(path + ".missing"); got != "" {
		t.Errorf("without a file: %q", got)
	}
}
