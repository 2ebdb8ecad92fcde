package ui

import (
	"fmt"
	"path/filepath"
	"slices"

	"ccagent/profile"
)

// marked are the bookmarks of one log.
type marked struct {
	Log string   `json:"log"` // as logName gives it
	At  []uint64 `json:"at"`  // ns since the log's beginning, in order
}

// Limits of what is remembered: the newest logs, the first bookmarks of each.
const (
	maxMarkedLogs = 32
	maxMarks      = 50
)

// logName identifies a log: by its capture, so that a copy has the same bookmarks and
// the next run under the same file name has none of them, or else by its path. It is
// empty for a log that is not a file.
func logName(p *profile.Profile, path string) string {
	if p.HaveCapture && p.Capture.StartUnixNs != 0 {
		return fmt.Sprintf("capture %d.%d", p.Capture.StartUnixNs, p.Capture.PID)
	}
	if path == "" {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return path
}

// bookmarks returns those of a log that lie within its duration.
func (s *settings) bookmarks(log string, duration uint64) []uint64 {
	for _, m := range s.Bookmarks {
		if m.Log == log && log != "" {
			at := slices.DeleteFunc(slices.Clone(m.At), func(t uint64) bool { return t > duration })
			slices.Sort(at)
			return at
		}
	}
	return nil
}

// mark stores the bookmarks of a log as the newest.
func (s *settings) mark(log string, at []uint64) {
	if log == "" || slices.Equal(at, s.bookmarks(log, ^uint64(0))) {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(s.Bookmarks), func(m marked) bool { return m.Log == log })
	if len(at) > 0 {
		kept = append(kept, marked{log, slices.Clone(at[:min(len(at), maxMarks)])})
	}
	s.Bookmarks = kept[max(0, len(kept)-maxMarkedLogs):]
}

// keepBookmarks stores the bookmarks on screen in the settings.
func (a *App) keepBookmarks() {
	if a.c != nil {
		a.kept.mark(logName(a.c.Profile, a.log.src.Path), a.c.Bookmarks)
	}
}
