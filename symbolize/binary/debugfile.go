package binary

import (
	"bytes"
	"encoding/hex"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"ccagent/symbolize/elffile"
)

// DebugFiles lists where a separate debug file of a binary may lie, the
// likeliest first: by build-id, then by its .gnu_debuglink name (GDB manual,
// "Debugging Information in Separate Files").
func DebugFiles(path string, b *Info) []string {
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

// OpenDebugFile opens the first of DebugFiles that is the binary's; nil where
// there is none. It looks below the root directory root first, where that is not nil.
func OpenDebugFile(root *os.File, path string, b *Info) *os.File {
	if root != nil {
		if f := openDebugFile(root, path, b); f != nil {
			return f
		}
	}
	return openDebugFile(nil, path, b)
}

func openDebugFile(root *os.File, path string, b *Info) *os.File {
	for _, p := range DebugFiles(path, b) {
		if p == path {
			continue
		}
		f, err := OpenInRoot(root, p)
		if err != nil {
			continue
		}
		if st, err := f.Stat(); err == nil && st.Mode().IsRegular() && b.IsDebugFile(f, st.Size()) {
			return f
		}
		f.Close()
	}
	return nil
}

// maxChecksummed bounds the debug files whose checksum is computed.
const maxChecksummed = 4 << 30

// IsDebugFile reports whether a file of size bytes is the binary's separate
// debug file: by the build-id, or for a binary that has none by the checksum in
// its .gnu_debuglink.
func (b *Info) IsDebugFile(f io.ReaderAt, size int64) bool {
	if len(b.BuildID) > 0 {
		// No more of it is read than this takes: it may be large, and compressed.
		d, err := elffile.Open(f, size)
		return err == nil && bytes.Equal(d.BuildID(), b.BuildID)
	}
	if b.DebugLnk == "" || size > maxChecksummed {
		return false
	}
	h := crc32.NewIEEE()
	_, err := io.Copy(h, io.NewSectionReader(f, 0, size))
	return err == nil && h.Sum32() == b.DebugCRC
}
