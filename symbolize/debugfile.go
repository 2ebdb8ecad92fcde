package symbolize

import (
	"encoding/hex"
	"os"
	"path/filepath"
)

// DebugFiles lists where a separate debug file of a binary may lie, the
// likeliest first: by build-id, then by its .gnu_debuglink name (GDB manual,
// "Debugging Information in Separate Files"). The build-id decides whether one
// is the right one.
func DebugFiles(path string, b *Binary) []string {
	const root = "/usr/lib/debug"
	var out []string
	if len(b.BuildID) > 1 {
		id := hex.EncodeToString(b.BuildID)
		out = append(out, filepath.Join(root, ".build-id", id[:2], id[2:]+".debug"))
	}
	if name := filepath.Base(b.DebugLnk); b.DebugLnk != "" && name != "." && name != "/" {
		dir := filepath.Dir(path)
		out = append(out, filepath.Join(dir, name), filepath.Join(dir, ".debug", name), filepath.Join(root, dir, name))
	}
	return out
}

// OpenDebugFile opens the first of DebugFiles that is a regular file, nil where
// there is none.
func OpenDebugFile(path string, b *Binary) *os.File {
	for _, p := range DebugFiles(path, b) {
		if p == path {
			continue
		}
		f, err := os.Open(p)
		if err != nil {
			continue
		}
		if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
			return f
		}
		f.Close()
	}
	return nil
}
