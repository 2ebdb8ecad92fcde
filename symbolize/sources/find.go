package sources

import (
	"bytes"
	"crypto/md5"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// Limits of sources.
const (
	maxFile  = 8 << 20
	maxTotal = 128 << 20 // of a log
	maxDirs  = 64        // places that one file is looked for in
)

// Finder finds the sources of one module.
type Finder struct {
	// Read reads a file, at most maxSize bytes of it; nil finds none. See the function of
	// that name.
	Read   func(ref Ref, maxSize int64) (Content, error)
	Module uint32 // in the log
	// Root is the number of the module's root directory; 0 is this process's own.
	Root int
	// Dirs are searched for relative names that are found nowhere else.
	Dirs []string
	// Built is when the module's file was written, to recognise sources that are newer.
	// Zero if unknown.
	Built time.Time
}

// Find reads a file by its path as compiled and says what is wrong with it: below the
// module's root directory first, then below this process's own. Its
// checksum (MD5, nil if it is not known), or else its time, decides whether it is the file
// that was compiled.
func (f *Finder) Find(path string, compDirs []string, sum []byte) (Content, string) {
	if f.Read == nil {
		return Content{}, ""
	}
	var candidates []Ref
	if filepath.IsAbs(path) {
		candidates = append(candidates, Ref{Module: f.Module, Name: path})
	} else {
		for _, d := range compDirs {
			if filepath.IsAbs(d) {
				candidates = append(candidates, Ref{Module: f.Module, Dir: d, Name: path})
			}
		}
	}
	var places []Ref
	if f.Root != 0 {
		for _, c := range candidates {
			c.InRoot = true
			places = append(places, c)
		}
	}
	places = append(places, candidates...)
	for _, d := range f.Dirs {
		if !filepath.IsAbs(path) {
			places = append(places, Ref{Module: f.Module, Dir: d, Name: path})
		}
	}
	problem := "source not found"
	for _, p := range places[:min(len(places), maxDirs)] {
		c, err := f.Read(p, maxFile)
		if err == nil {
			return c, f.doubt(&c, sum)
		}
		if !errors.Is(err, os.ErrNotExist) {
			problem = err.Error()
		}
	}
	return Content{}, problem
}

// doubt says why a file may not be the one that was compiled; empty if nothing does.
func (f *Finder) doubt(c *Content, sum []byte) string {
	if len(sum) == md5.Size {
		if have := md5.Sum(c.Text); !bytes.Equal(have[:], sum) {
			return "may differ from what was compiled: its checksum is another"
		}
		return ""
	}
	if f.Built.After(earliest) && c.ModTime.After(f.Built) {
		return "may differ from what was compiled: newer than the binary"
	}
	return ""
}

// earliest is what no build's time precedes but where times are set for the sake of
// reproducible builds (Nix sets one second after the epoch). Such times are ignored.
var earliest = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
