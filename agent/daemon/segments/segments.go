// Package segments keeps the pieces of logs that the daemon writes in a folder: one log a process
// and stretch of time, each whole in itself, in STATE/SERVICE/PID-START.eventlog. START is the wall
// clock in UTC at which the piece begins. A piece is closed when nobody holds its lock.
package segments

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ccagent/agent/discovery"
	"ccagent/eventlog"
)

// Layout of START in the names of pieces.
const layout = "20060102T150405Z"

const suffix = ".eventlog"

// Folder is the folder of all pieces.
type Folder struct{ path string }

// Open opens a folder, which is created if it does not exist. Only its owner may look into it.
func Open(path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("open the folder of logs: %w", err)
	}
	return &Folder{path}, nil
}

// Name gives a piece that begins at a time a name that no other has, and makes the folder for it.
func (f *Folder) Name(service string, pid uint32, start time.Time) (string, error) {
	dir := filepath.Join(f.path, discovery.Clean(service))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a folder for logs: %w", err)
	}
	base := filepath.Join(dir, fmt.Sprintf("%d-%s", pid, start.UTC().Format(layout)))
	for n := 1; ; n++ {
		name := base
		if n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		if _, err := os.Lstat(name + suffix); errors.Is(err, fs.ErrNotExist) {
			return name + suffix, nil
		} else if err != nil {
			return "", fmt.Errorf("name a log: %w", err)
		}
	}
}

// Piece is a piece as its name and its file describe it.
type Piece struct {
	Path    string
	Service string // cleaned
	PID     uint32
	Start   time.Time
	End     time.Time // of the last write
	Size    int64
}

// Parse takes a piece's path apart; false for other files.
func Parse(path string) (p Piece, ok bool) {
	p.Path, p.Service = path, filepath.Base(filepath.Dir(path))
	name, ok := strings.CutSuffix(filepath.Base(path), suffix)
	if !ok {
		return p, false
	}
	parts := strings.Split(name, "-")
	if len(parts) < 2 {
		return p, false
	}
	pid, err := strconv.ParseUint(parts[0], 10, 32)
	if err != nil {
		return p, false
	}
	p.PID = uint32(pid)
	p.Start, err = time.Parse(layout, parts[1])
	return p, err == nil
}

// Pieces lists all pieces, the oldest first.
func (f *Folder) Pieces() ([]Piece, error) {
	paths, err := filepath.Glob(filepath.Join(f.path, "*", "*"+suffix))
	if err != nil {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	var all []Piece
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue // it was removed meanwhile, or is not ours
		}
		if p, ok := Parse(path); ok {
			p.End, p.Size = info.ModTime(), info.Size()
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b Piece) int { return a.End.Compare(b.End) })
	return all, nil
}

// Unfinished lists the pieces that lack their end, as those that a killed daemon has left, and
// removes empty ones. Nobody may write pieces meanwhile.
func (f *Folder) Unfinished() (paths []string, err error) {
	all, err := f.Pieces()
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.Size == 0 {
			err = errors.Join(err, os.Remove(p.Path))
		} else if !ended(p) {
			paths = append(paths, p.Path)
		}
	}
	return paths, err
}

// ended reports whether a piece has its end marker behind whole blocks of events.
func ended(p Piece) bool {
	f, err := os.Open(p.Path)
	if err != nil {
		return true
	}
	defer f.Close()
	_, ended := eventlog.Extent(f, p.Size)
	return ended
}

// Limits bound what is kept. Zero is no bound.
type Limits struct {
	Bytes int64
	Age   time.Duration
}

// Retain removes the oldest pieces beyond the limits, except those that are being written, and
// returns what is left. How old a piece is says age of its end.
func (f *Folder) Retain(l Limits, age func(end time.Time) time.Duration, written func(path string) bool) (pieces int, bytes int64, err error) {
	all, err := f.Pieces()
	if err != nil {
		return 0, 0, err
	}
	for _, p := range all {
		bytes += p.Size
	}
	pieces = len(all)
	slices.SortStableFunc(all, func(a, b Piece) int { return cmp.Compare(age(b.End), age(a.End)) })
	var errs []error
	for _, p := range all {
		old := l.Age > 0 && age(p.End) > l.Age
		if !old && (l.Bytes == 0 || bytes <= l.Bytes) || written(p.Path) {
			continue
		}
		if err := os.Remove(p.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove an old log: %w", err))
			continue
		}
		pieces--
		bytes -= p.Size
		_ = os.Remove(filepath.Dir(p.Path)) // fails unless it was the last
	}
	return pieces, bytes, errors.Join(errs...)
}
