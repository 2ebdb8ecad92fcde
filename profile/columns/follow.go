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

	"ccagent/eventlog"
)

// FollowState tells what has become of a log that is followed.
type FollowState uint8

const (
	FollowGrowing   FollowState = iota // more may come
	FollowEnded                        // it has its end marker
	FollowRotated                      // the capture goes on in another log; see Follower.Next
	FollowAbandoned                    // who wrote it is gone and did not end it
	FollowReplaced                     // its name is another file's now
	FollowRemoved                      // its name is gone
	FollowTruncated                    // bytes that had been read are no longer there
)

var followTexts = [...]string{
	"being written", "ended", "continued in the next log", "cut off: its writer is gone", "replaced by another file",
	"removed", "truncated while it was read",
}

// String tells the state as a user reads it.
func (s FollowState) String() string {
	if int(s) < len(followTexts) {
		return followTexts[s]
	}
	return "unknown"
}

// Follower reads a log while it is written. It holds the file open, so that it
// reads one and the same log whatever becomes of its name. It is not safe for
// concurrent use; the Logs that it gives are immutable and independent.
type Follower struct {
	// Progress, if not nil, is called in the course of Poll with the bytes read
	// so far and those that there are.
	Progress func(done, total int64)

	path   string
	file   *os.File
	in     countingReader
	rd     *eventlog.Reader
	b      *builder
	state  FollowState
	locked bool // its writer was seen at work
	err    error
}

// Follow opens a log that is being written, or was. Nothing is read before the
// first Poll: the log may be empty still.
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

// Poll takes what has come since the last time. It reports whether that was
// anything, or the state has changed. Once State is not FollowGrowing, nothing
// more comes. The error is an *eventlog.HeaderError for what is no log, or that
// of reading; it is final too.
func (f *Follower) Poll() (changed bool, err error) {
	if f.err != nil || f.state != FollowGrowing {
		return false, f.err
	}
	// What is looked at before reading is true of all that is read then.
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
		f.state = FollowRotated // it gets its symbols, and its end, with the last
	case f.rd.Complete():
		f.state = FollowEnded
	default:
		f.state = next
	}
	return changed || f.state != FollowGrowing, nil
}

// look finds out what has become of the file.
func (f *Follower) look() (FollowState, error) {
	st, err := f.file.Stat()
	if err != nil {
		return 0, err
	}
	if st.Size() < f.in.n {
		return FollowTruncated, nil
	}
	f.in.tell = nil
	if told := f.Progress; told != nil {
		f.in.tell = func(n int64) { told(n, max(st.Size(), n)) }
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
		return FollowAbandoned, nil // our own writers hold the lock
	}
	return FollowGrowing, nil
}

// take reads all that there is.
func (f *Follower) take() (changed bool, err error) {
	changed = f.b.take(f.rd)
	err = f.rd.Err()
	var header *eventlog.HeaderError
	if errors.As(err, &header) && (errors.Is(err, eventlog.ErrEmpty) || errors.Is(err, eventlog.ErrHeaderCut)) {
		// The header is not there yet.
		if _, err := f.file.Seek(0, io.SeekStart); err != nil {
			return false, fmt.Errorf("follow log: %w", err)
		}
		tell := f.in.tell
		f.begin()
		f.in.tell = tell
		return false, nil
	}
	return changed, err
}

// State tells what has become of the log, as of the last Poll.
func (f *Follower) State() FollowState { return f.state }

// Log gives what has been read so far, as Load would of a log that ended
// there. It costs as much as what changes in the log: symbols, totals, threads;
// samples are shared with the Follower and are not copied.
func (f *Follower) Log() *Log {
	a := &f.b.p.Accounting
	a.Complete, a.Bytes, a.Growing = f.rd.Complete(), f.in.n, f.state == FollowGrowing
	return f.b.snapshot()
}

// Next is the log in which a rotated capture goes on, after FollowRotated.
func (f *Follower) Next() string { return nextPiece(f.path) }

// Close closes the file. Logs that it gave stay.
func (f *Follower) Close() error { return f.file.Close() }

var pieceNumber = regexp.MustCompile(`\.([0-9]{1,9})$`)

// nextPiece names the log after this one, as ccagent names them: NAME.eventlog,
// NAME.2.eventlog, NAME.3.eventlog, … A first piece whose name ends in a number
// is taken for a later one only if there is the one before it.
func nextPiece(path string) string {
	ext := filepath.Ext(path)
	base := strings.TrimSuffix(path, ext)
	if m := pieceNumber.FindStringSubmatchIndex(base); m != nil {
		n, _ := strconv.Atoi(base[m[2]:])
		next := fmt.Sprintf("%s.%d%s", base[:m[0]], n+1, ext)
		if _, err := os.Stat(next); err == nil {
			return next
		}
	}
	return fmt.Sprintf("%s.2%s", base, ext)
}
