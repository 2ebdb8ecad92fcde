package sources

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"ccagent/symbolize/binary"
	"ccagent/symbolize/coredump"
)

// Content is what a source file holds.
type Content struct {
	Text    []byte
	ModTime time.Time
}

// sourceSuffixes are the files that are taken for source. Paths in debug
// information come from whoever built the program; nothing else is opened.
var sourceSuffixes = []string{
	".hs", ".lhs", ".hsc", ".chs", ".x", ".y", ".hs-boot", ".cmm", ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".rs",
	coredump.Suffix,
}

// ErrNoSource is wrapped by ReadSource's errors for files that are not taken.
var ErrNoSource = errors.New("not a source file")

// Read reads a source file as the calling process may. Anything but
// a regular file with a source file's suffix and valid text is refused, and so is what a
// link leads to (binary.ErrLink). What it reads goes into the log: see Reader for whose
// rights it is to run with.
func Read(path string, maxSize int64) (Content, error) {
	return ReadInRoot(nil, path, maxSize)
}

// ReadInRoot reads a source file as Read does, below another root directory, out of which
// nothing leads. A nil root is this process's own.
func ReadInRoot(root *os.File, path string, maxSize int64) (Content, error) {
	known := false
	for _, s := range sourceSuffixes {
		known = known || strings.HasSuffix(path, s)
	}
	if !known {
		return Content{}, fmt.Errorf("read %s: %w", path, ErrNoSource)
	}
	f, err := binary.OpenWithoutLinks(root, path)
	if err != nil {
		return Content{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return Content{}, err
	}
	if !st.Mode().IsRegular() {
		return Content{}, fmt.Errorf("read %s: %w", path, ErrNoSource)
	}
	if st.Size() > maxSize {
		return Content{}, fmt.Errorf("read %s: %d bytes are more than the limit of %d", path, st.Size(), maxSize)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return Content{}, err
	}
	if int64(len(text)) > maxSize || !utf8.Valid(text) || strings.IndexByte(string(text), 0) >= 0 {
		return Content{}, fmt.Errorf("read %s: %w", path, ErrNoSource)
	}
	return Content{Text: text, ModTime: st.ModTime()}, nil
}
