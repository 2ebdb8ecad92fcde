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
	"sync"
	"time"

	"ccagent/agent/discovery"
	"ccagent/eventlog"
)

// Layout of START in the names of pieces.
const layout = "20060102T150405Z"

const suffix = ".eventlog"

// Folder is the folder of all pieces.
type Folder struct {
	path string
	mu   sync.Mutex // of what follows
	// What Retain knows, since listing tens of thousands of files each time would cost more than all
	// that the daemon does otherwise: the pieces that are closed, the oldest first, those that may still
	// be written, and when all were listed last.
	closed []Piece
	begun  map[string]bool
	listed time.Time
}

// Open opens a folder, which is created if it does not exist. Only its owner may look into it.
func Open(path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("open the folder of logs: %w", err)
	}
	return &Folder{path: path, begun: map[string]bool{}}, nil
}

// Create has a piece that begins at a time created, by a name that no other has, in a folder that is made for it.
func (f *Folder) Create(service string, pid uint32, start time.Time, create func(path string) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	path, err := f.name(service, pid, start)
	if err != nil {
		return err
	}
	if err := create(path); err != nil {
		return err
	}
	f.begun[path] = true
	return nil
}

func (f *Folder) name(service string, pid uint32, start time.Time) (string, error) {
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
		if p, err := look(path); err == nil { // else it was removed meanwhile, or is not ours
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b Piece) int { return a.End.Compare(b.End) })
	return all, nil
}

// errNotOurs is returned for files that are no pieces.
var errNotOurs = errors.New("the file is no piece of a log")

// look describes a file that is a piece.
func look(path string) (Piece, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return Piece{}, err
	}
	p, ok := Parse(path)
	if !ok || !info.Mode().IsRegular() {
		return Piece{}, errNotOurs
	}
	p.End, p.Size = info.ModTime(), info.Size()
	return p, nil
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

// listEvery is how often Retain lists all files again, for what others have changed.
const listEvery = time.Hour

// Retain removes the oldest pieces beyond the limits, except those that are being written, and
// returns what is left. How old a piece is says age of its end.
func (f *Folder) Retain(l Limits, age func(end time.Time) time.Duration, written func(path string) bool) (pieces int, bytes int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); f.listed.IsZero() || now.Sub(f.listed) > listEvery {
		if err := f.list(); err != nil {
			return 0, 0, err
		}
		f.listed = now
	}
	bytes = f.settle(written)
	for _, p := range f.closed {
		bytes += p.Size
	}
	older := func(a, b Piece) int { return cmp.Compare(age(b.End), age(a.End)) }
	if !slices.IsSortedFunc(f.closed, older) {
		slices.SortStableFunc(f.closed, older)
	}
	var errs []error
	kept := f.closed[:0]
	for i, p := range f.closed {
		old := l.Age > 0 && age(p.End) > l.Age
		if !old && (l.Bytes == 0 || bytes <= l.Bytes) {
			kept = append(kept, f.closed[i:]...) // those that follow are younger
			break
		}
		now, err := look(p.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err == nil && !now.End.Equal(p.End): // it was given its names meanwhile
			bytes += now.Size - p.Size
			kept = append(kept, now)
			continue
		case err == nil:
			err = os.Remove(p.Path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove an old log: %w", err))
			kept = append(kept, p)
			continue
		}
		bytes -= p.Size
		_ = os.Remove(filepath.Dir(p.Path)) // fails unless it was the last
	}
	clear(f.closed[len(kept):])
	f.closed = kept
	return len(f.closed) + len(f.begun), bytes, errors.Join(errs...)
}

// list finds all pieces. Those that are being written are known, or found to be by settle.
func (f *Folder) list() error {
	all, err := f.Pieces()
	if err != nil {
		return err
	}
	clear(f.begun)
	f.closed = f.closed[:0]
	for _, p := range all {
		f.begun[p.Path] = true
	}
	return nil
}

// settle finds which of the begun pieces are closed by now, and returns the size of the others in bytes.
func (f *Folder) settle(written func(path string) bool) (bytes int64) {
	var fresh []Piece
	for path := range f.begun {
		p, err := look(path)
		switch {
		case err != nil: // it was empty
			delete(f.begun, path)
		case written(path):
			bytes += p.Size
		default:
			delete(f.begun, path)
			fresh = append(fresh, p)
		}
	}
	slices.SortFunc(fresh, func(a, b Piece) int { return cmp.Or(a.End.Compare(b.End), cmp.Compare(a.Path, b.Path)) })
	f.closed = append(f.closed, fresh...)
	return bytes
}
