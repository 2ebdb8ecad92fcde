package sources

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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
	".hs", ".lhs", ".hsc", ".chs", ".x", ".y", ".hs-boot", ".cmm", ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".rs", currySuffix,
	coredump.Suffix,
}

// currySuffix is that of files of Curry, from which KiCS2 generates Haskell. They are shown, but code
// is not named by them: a function has several versions there, which the notes' names tell apart.
const currySuffix = ".curry"

// Named reports whether a file is called as source files are.
func Named(path string) bool {
	return slices.ContainsFunc(sourceSuffixes, func(s string) bool { return strings.HasSuffix(path, s) })
}

// Ref says where a source file may be.
type Ref struct {
	Module uint32 // whose debug information names the file
	InRoot bool   // below the root directory of the program that mapped the module
	Dir    string // from which Name counts; empty where that is absolute
	Name   string // by the debug information, with no needless elements
}

// Path is the path to open.
func (r *Ref) Path() string {
	if r.Dir == "" {
		return r.Name
	}
	return filepath.Join(r.Dir, r.Name)
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

// ReadOwn reads a source file as Read does, and knows no other root directory.
func ReadOwn(ref Ref, maxSize int64) (Content, error) {
	if ref.InRoot {
		return Content{}, os.ErrNotExist
	}
	return Read(ref.Path(), maxSize)
}

// ReadInRoot reads a source file as Read does, below another root directory, out of which
// nothing leads. A nil root is this process's own.
func ReadInRoot(root *os.File, path string, maxSize int64) (Content, error) {
	if !Named(path) {
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
