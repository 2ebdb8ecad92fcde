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
	var candidates []sources.Ref
	if filepath.IsAbs(path) {
		candidates = append(candidates, sources.Ref{Module: m.mod.ID, Name: path})
	} else {
		for _, d := range compDirs {
			if filepath.IsAbs(d) {
				candidates = append(candidates, sources.Ref{Module: m.mod.ID, Dir: d, Name: path})
			}
		}
	}
	var places []sources.Ref
	if m.mod.Root != 0 {
		for _, c := range candidates {
			c.InRoot = true
			places = append(places, c)
		}
	}
	places = append(places, candidates...)
	for _, d := range r.job.SourceDirs {
		if !filepath.IsAbs(path) {
			places = append(places, sources.Ref{Module: m.mod.ID, Dir: d, Name: path})
		}
	}
	problem := "source not found"
	for i, c := range places {
		if i >= maxSourceDirs {
			break
		}
		s, err := r.job.ReadSource(c, maxSourceFile)
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
