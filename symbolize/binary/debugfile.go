package binary

import (
	"bytes"
	"encoding/hex"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"ccagent/internal/credentials"
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
	return openSmallDebugFile(root, path, b, 1<<62)
}

func openSmallDebugFile(root *os.File, path string, b *Info, limit int64) *os.File {
	if root != nil {
		if f := openDebugFile(root, path, b, limit); f != nil {
			return f
		}
	}
	return openDebugFile(nil, path, b, limit)
}

func openDebugFile(root *os.File, path string, b *Info, limit int64) *os.File {
	for _, p := range DebugFiles(path, b) {
		if p == path {
			continue
		}
		f, err := OpenInRoot(root, p)
		if err != nil {
			continue
		}
		if st, err := f.Stat(); err == nil && st.Mode().IsRegular() && st.Size() <= limit && b.IsDebugFile(f, st.Size()) {
			return f
		}
		f.Close()
	}
	return nil
}

// maxAwaited bounds the debug files that are recognised by their checksum while a capture waits for it.
const maxAwaited = 256 << 20

// StrippedSymbols opens the separate debug file of a stripped binary, among what a reader may read; nil
// if the binary has symbols of its own, or there is no such file. done closes it.
func (b *Info) StrippedSymbols(root *os.File, path string, reader credentials.Credentials) (debug *elffile.File, done func()) {
	limit := int64(1 << 62)
	if len(b.BuildID) == 0 {
		limit = maxAwaited
	}
	none := func() {}
	if b.HasSymtab {
		return nil, none
	}
	var f *os.File
	_ = reader.Run(func() error {
		f = openSmallDebugFile(root, path, b, limit)
		return nil
	})
	if f == nil {
		return nil, none
	}
	if info, err := f.Stat(); err == nil {
		debug, _ = elffile.Open(f, info.Size())
	}
	return debug, func() { f.Close() }
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
