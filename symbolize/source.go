package symbolize

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// sourceSuffixes are the files that are taken for source. Paths in debug
// information come from whoever built the program; nothing else is opened.
var sourceSuffixes = []string{
	".hs", ".lhs", ".hsc", ".chs", ".x", ".y", ".hs-boot", ".cmm", ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".rs",
	dumpSuffix,
}

// ErrNoSource is wrapped by ReadSource's errors for files that are not taken.
var ErrNoSource = errors.New("not a source file")

// ReadSourceFile reads a source file as the calling process may. Anything but
// a regular file with a source file's suffix and valid text is refused. It is
// to run with the rights of the log's owner, no more: what it reads goes into
// the log.
func ReadSourceFile(path string, maxSize int64) (Source, error) {
	return ReadSourceInRoot(nil, path, maxSize)
}

// ReadSourceInRoot reads a source file as ReadSourceFile does, and as OpenInRoot finds
// it.
func ReadSourceInRoot(root *os.File, path string, maxSize int64) (Source, error) {
	known := false
	for _, s := range sourceSuffixes {
		known = known || strings.HasSuffix(path, s)
	}
	if !known {
		return Source{}, fmt.Errorf("read %s: %w", path, ErrNoSource)
	}
	f, err := OpenInRoot(root, path)
	if err != nil {
		return Source{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return Source{}, err
	}
	if !st.Mode().IsRegular() {
		return Source{}, fmt.Errorf("read %s: %w", path, ErrNoSource)
	}
	if st.Size() > maxSize {
		return Source{}, fmt.Errorf("read %s: %d bytes are more than the limit of %d", path, st.Size(), maxSize)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return Source{}, err
	}
	if int64(len(text)) > maxSize || !utf8.Valid(text) || strings.IndexByte(string(text), 0) >= 0 {
		return Source{}, fmt.Errorf("read %s: %w", path, ErrNoSource)
	}
	return Source{Text: text, ModTime: st.ModTime()}, nil
}

// readSource finds a file by its path as compiled: below the root directory that the
// program had, and then below our own.
func (m *moduleRun) readSource(path string, compDirs []string) (Source, string) {
	r, built := m.r, m.mod.ModTime
	if r.job.ReadSource == nil {
		return Source{}, ""
	}
	var candidates []string
	if filepath.IsAbs(path) {
		candidates = append(candidates, path)
	} else {
		for _, d := range compDirs {
			if filepath.IsAbs(d) {
				candidates = append(candidates, filepath.Join(d, path))
			}
		}
	}
	type place struct {
		root int
		path string
	}
	var places []place
	if m.mod.Root != 0 && r.job.ReadSourceIn != nil {
		for _, c := range candidates {
			places = append(places, place{m.mod.Root, c})
		}
	}
	for _, c := range candidates {
		places = append(places, place{path: c})
	}
	for _, d := range r.job.SourceDirs {
		if !filepath.IsAbs(path) {
			places = append(places, place{path: filepath.Join(d, path)})
		}
	}
	problem := "source not found"
	for i, c := range places {
		if i >= maxSourceDirs {
			break
		}
		var s Source
		var err error
		if c.root != 0 {
			s, err = r.job.ReadSourceIn(c.root, c.path, maxSourceFile)
		} else {
			s, err = r.job.ReadSource(c.path, maxSourceFile)
		}
		if err == nil {
			if !built.IsZero() && s.ModTime.After(built) {
				return s, "newer than the binary"
			}
			return s, ""
		}
		if !errors.Is(err, os.ErrNotExist) {
			problem = err.Error()
		}
	}
	return Source{}, problem
}

const maxSourceDirs = 64
