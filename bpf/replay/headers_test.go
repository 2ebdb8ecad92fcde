//go:build linux && cgo

package replay

import (
	"os"
	"path/filepath"
	"testing"
)

// This folder has a link to every header of bpf/c. Go rebuilds a package when a file in its
// own folder has changed, so a change of the walker must be visible here.
func TestHeadersAreLinked(t *testing.T) {
	headers, err := filepath.Glob("../c/*.h")
	if err != nil || len(headers) == 0 {
		t.Fatalf("no headers in ../c: %v", err)
	}
	for _, h := range headers {
		if to, err := os.Readlink(filepath.Base(h)); err != nil || to != h {
			t.Errorf("not linked: ln -s %s %s", h, filepath.Join("bpf/replay", filepath.Base(h)))
		}
	}
	links, err := filepath.Glob("*.h")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if _, err := os.Stat(l); err != nil {
			t.Errorf("link to nowhere: remove %s", filepath.Join("bpf/replay", l))
		}
	}
}
