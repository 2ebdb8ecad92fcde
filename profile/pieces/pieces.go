package pieces

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ccagent/eventlog"
)

// State says whether a piece is whole.
type State string

const (
	Whole   State = "whole"
	Growing State = "growing" // it is being written
	Cut     State = "cut"     // its end is missing, or cannot be reached for damage
)

// Piece is one log of a folder.
type Piece struct {
	Path    string
	Bytes   int64
	State   State
	Service string // of the capture's labels, or else the piece's folder, or its program
	Host    string // empty in logs that do not have it
	Program string // path of the executable
	BuildID string // the executable's, in hexadecimal; empty if it has none
	GHC     string
	PID     uint32
	// Start and End are wall-clock times: of the capture's begin, and of the last event that can
	// be reached.
	Start, End time.Time
}

// Problem is a file that is no piece.
type Problem struct {
	Path    string
	Service string // the file's folder, which a piece would have for one if its labels have none; empty without
	Begun   bool   // it is being written, and there is nothing in it yet: it is no error
	Err     error
}

func (p *Problem) Error() string { return fmt.Sprintf("%s: %v", p.Path, p.Err) }
func (p *Problem) Unwrap() error { return p.Err }

// errNoCapture is the error for a log that does not say where its times are in wall-clock time.
var errNoCapture = errors.New("the log does not say what was captured and when")

// errBegun is the error for a log that is being written and does not say yet what it is of.
var errBegun = errors.New("it has just begun: nothing is in it yet")

// justBegun is for how long an empty file is taken to be a log that has just begun where no lock says so: not every file system has locks.
const justBegun = time.Minute

// Extension is the ending of the names of pieces.
const Extension = ".eventlog"

// Scan returns the pieces below a folder, ordered by their start, and the files that are named as
// pieces and are none. The error is for a folder that cannot be read.
func Scan(dir string) ([]Piece, []Problem, error) {
	var (
		found    []Piece
		problems []Problem
	)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == dir:
			return err
		case errors.Is(err, fs.ErrNotExist): // retention removes pieces at any time
			return nil
		case err != nil:
			problems = append(problems, Problem{Path: path, Service: folder(dir, path), Err: err})
			return nil
		case !d.Type().IsRegular() || !strings.HasSuffix(path, Extension):
			return nil
		}
		p, err := Look(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			problems = append(problems, Problem{path, folder(dir, path), errors.Is(err, errBegun), err})
		default:
			p.Service = cmp.Or(p.Service, folder(dir, path), filepath.Base(p.Program))
			found = append(found, p)
		}
		return nil
	})
	slices.SortStableFunc(found, func(a, b Piece) int { return a.Start.Compare(b.Start) })
	return found, problems, err
}

// folder returns the name of the folder of a piece below dir, empty if it lies in dir itself.
func folder(dir, path string) string {
	in, err := filepath.Rel(dir, filepath.Dir(path))
	if err != nil || in == "." {
		return ""
	}
	return filepath.Base(in)
}

// headBytes bounds how much of a piece is read to find what it is of. headRecords likewise.
const (
	headBytes   = 1 << 20
	headRecords = 1 << 12
)

// Look reads what a log is of, and its extent.
func Look(path string) (Piece, error) {
	f, err := os.Open(path)
	if err != nil {
		return Piece{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return Piece{}, err
	}
	p := Piece{Path: path, Bytes: st.Size()}
	start, err := p.head(io.NewSectionReader(f, 0, min(st.Size(), headBytes)))
	switch {
	case err == nil:
	case eventlog.BeingWritten(f) || st.Size() == 0 && time.Since(st.ModTime()) < justBegun:
		return Piece{}, errBegun
	default:
		return Piece{}, err
	}
	last, ended := eventlog.Extent(f, st.Size())
	p.Start, p.End = wall(start), wall(start+min(last, maxNs-start))
	switch {
	case ended:
		p.State = Whole
	case eventlog.BeingWritten(f):
		p.State = Growing
	default:
		p.State = Cut
	}
	return p, nil
}

// maxNs bounds the times of pieces, so that sums of two do not overflow.
const maxNs = 1 << 62

func wall(ns uint64) time.Time { return time.Unix(0, int64(ns)) }

// head reads the capture's description and the module of its executable.
func (p *Piece) head(in io.Reader) (start uint64, err error) {
	r := eventlog.NewReader(in)
	have := false
	for n := 0; n < headRecords && r.Next(); n++ {
		switch ev := r.Record().Event.(type) {
		case *eventlog.Capture:
			if have {
				continue
			}
			have = true
			start = min(ev.StartUnixNs, maxNs)
			p.Host, p.Service = ev.Label(eventlog.LabelHost), ev.Label(eventlog.LabelService)
			p.Program, p.PID, p.GHC = ev.Program, ev.PID, ev.GHCVersion
		case *eventlog.Module:
			if have && ev.Path == p.Program {
				p.BuildID = fmt.Sprintf("%x", ev.BuildID)
				return start, nil
			}
		case *eventlog.Sample: // what is defined comes before
			if have {
				return start, nil
			}
		}
	}
	if have {
		return start, nil
	}
	if err := r.Err(); err != nil {
		return 0, err
	}
	return 0, errNoCapture
}
