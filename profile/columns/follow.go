package columns

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"ccagent/eventlog"
)

// FollowState is the state of a log that a Follower reads.
type FollowState uint8

const (
	FollowGrowing   FollowState = iota // the writer is alive, more may come
	FollowEnded                        // the log has its end marker
	FollowRotated                      // the capture continues in another log; see Follower.Next
	FollowAbandoned                    // the writer is gone and did not write the end marker
	FollowReplaced                     // the name now belongs to another file
	FollowRemoved                      // the name no longer exists
	FollowTruncated                    // bytes that had been read are no longer in the file
)

var followTexts = [...]string{
	"being written", "ended", "continued in the next log", "cut off: its writer is gone", "replaced by another file",
	"removed", "truncated while it was read",
}

// String describes the state for users.
func (s FollowState) String() string {
	if int(s) < len(followTexts) {
		return followTexts[s]
	}
	return "unknown"
}

// Follower reads a log while it is being written. It keeps the file open, so it reads the
// same log even if the name is removed or reused. It is not safe for concurrent use; the
// Logs that it returns are immutable and independent.
type Follower struct {
	// Progress, if not nil, is called by Poll with the bytes read so far and the
	// file's size.
	Progress func(done, total int64)

	path   string
	file   *os.File
	in     countingReader
	rd     *eventlog.Reader
	b      *builder
	state  FollowState
	locked bool // the writer has been seen to hold its lock
	err    error
}

// Follow opens a log that is, or was, being written. It reads nothing: the log may still
// be empty. Reading starts with the first Poll.
func Follow(path string) (*Follower, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := file.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("follow %s: not a regular file; open it without following", path)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	f := &Follower{path: path, file: file}
	f.begin()
	return f, nil
}

func (f *Follower) begin() {
	f.in = countingReader{r: f.file}
	f.rd, f.b = eventlog.NewReader(&f.in), newBuilder()
	f.rd.SetGrowing(true)
}

// Poll reads what was appended since the last call. It reports whether it read anything
// or the state changed. Once State is not FollowGrowing, Poll does nothing more. The
// error is an *eventlog.HeaderError for a file that is no log, or the error of reading;
// after an error, too, Poll does nothing more.
func (f *Follower) Poll() (changed bool, err error) {
	if f.err != nil || f.state != FollowGrowing {
		return false, f.err
	}
	// The state is examined before reading, so that it holds for all the bytes read
	// afterwards.
	next, err := f.look()
	if err != nil {
		f.err = fmt.Errorf("follow log: %w", err)
		return false, f.err
	}
	if next == FollowTruncated {
		f.state = next
		return true, nil
	}
	if next != FollowGrowing {
		f.rd.SetGrowing(false)
	}
	if changed, err = f.take(); err != nil {
		f.err = err
		return changed, err
	}
	switch {
	case f.b.p.HaveEnd && f.b.p.End.Reason == eventlog.EndRotated:
		f.state = FollowRotated // symbols and the end marker are written to the last log
	case f.rd.Complete():
		f.state = FollowEnded
	default:
		f.state = next
	}
	return changed || f.state != FollowGrowing, nil
}

// look determines the state of the file.
func (f *Follower) look() (FollowState, error) {
	st, err := f.file.Stat()
	if err != nil {
		return 0, err
	}
	if st.Size() < f.in.n {
		return FollowTruncated, nil
	}
	f.in.report = nil
	if progress := f.Progress; progress != nil {
		f.in.report = func(n int64) { progress(n, max(st.Size(), n)) }
	}
	if eventlog.BeingWritten(f.file) {
		f.locked = true
		return FollowGrowing, nil
	}
	there, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return FollowRemoved, nil
	case err != nil:
		return 0, err
	case !os.SameFile(st, there):
		return FollowReplaced, nil
	case f.locked || f.b.p.HaveCapture && runtime.GOOS == "linux":
		return FollowAbandoned, nil // writers of this project hold the lock
	}
	return FollowGrowing, nil
}

// take reads everything that is there.
func (f *Follower) take() (changed bool, err error) {
	changed = f.b.take(f.rd)
	err = f.rd.Err()
	var header *eventlog.HeaderError
	if errors.As(err, &header) && (errors.Is(err, eventlog.ErrEmpty) || errors.Is(err, eventlog.ErrHeaderCut)) {
		// The header is not complete yet.
		if _, err := f.file.Seek(0, io.SeekStart); err != nil {
			return false, fmt.Errorf("follow log: %w", err)
		}
		report := f.in.report
		f.begin()
		f.in.report = report
		return false, nil
	}
	return changed, err
}

// State returns the state as of the last Poll.
func (f *Follower) State() FollowState { return f.state }

// Log returns the part read so far, as Load would return it of a log that ended there. It
// copies what later events may change (symbols, totals, threads) and shares the samples
// with the Follower.
func (f *Follower) Log() *Log {
	a := &f.b.p.Accounting
	a.Complete, a.Bytes, a.Growing = f.rd.Complete(), f.in.n, f.state == FollowGrowing
	return f.b.snapshot()
}

// Next returns the path of the log in which a rotated capture continues, after
// FollowRotated.
func (f *Follower) Next() string { return nextPiece(f.path) }

// Close closes the file. Logs returned earlier remain valid.
func (f *Follower) Close() error { return f.file.Close() }

var pieceNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\.([0-9]{1,9})$`) })

// nextPiece returns the path of the next log of a rotated capture: NAME.eventlog,
// NAME.2.eventlog, NAME.3.eventlog, … A name that ends in a number counts as a later
// piece only if the piece before it exists.
func nextPiece(path string) string {
	ext := filepath.Ext(path)
	base := strings.TrimSuffix(path, ext)
	if m := pieceNumber().FindStringSubmatchIndex(base); m != nil {
		n, _ := strconv.Atoi(base[m[2]:])
		next := fmt.Sprintf("%s.%d%s", base[:m[0]], n+1, ext)
		if _, err := os.Stat(next); err == nil {
			return next
		}
	}
	return fmt.Sprintf("%s.2%s", base, ext)
}
