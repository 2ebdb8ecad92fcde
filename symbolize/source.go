package symbolize

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"ccagent/symbolize/sources"
)

// readSource finds a file by its path as compiled: below the root directory that the
// program had, and then below our own.
func (m *moduleRun) readSource(path string, compDirs []string) (sources.Content, string) {
	r, built := m.r, m.mod.ModTime
	if r.job.ReadSource == nil {
		return sources.Content{}, ""
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
		var s sources.Content
		var err error
		if c.root != 0 {
			s, err = r.job.ReadSourceIn(c.root, c.path, maxSourceFile)
		} else {
			s, err = r.job.ReadSource(c.path, maxSourceFile)
		}
		if err == nil {
			if built.After(earliest) && s.ModTime.After(built) {
				return s, "may differ from what was compiled: newer than the binary"
			}
			return s, ""
		}
		if !errors.Is(err, os.ErrNotExist) {
			problem = err.Error()
		}
	}
	return sources.Content{}, problem
}

const maxSourceDirs = 64

// earliest is what no build's time precedes but where times are set for the sake of
// reproducible builds (Nix sets one second after the epoch). Such times tell nothing.
var earliest = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
