package sources

import (
	"fmt"
	"os"

	"ccagent/internal/credentials"
	"ccagent/symbolize/binary"
)

// Reader reads the source files that go into a log, as one user.
//
// The paths come from debug information, which whoever built the program wrote, and may
// be asked for by a process that parses it and has been taken over. So a Reader has the
// rights of the profiled program's own user, also where root profiles: what that user
// cannot read does not get into the log. It follows no link, since a link's target is
// somebody else's choice once the path was recorded.
type Reader struct {
	work  chan func()
	ended chan error
}

// NewReader gives a reader with a user's rights to files.
func NewReader(user credentials.Credentials) (*Reader, error) {
	r := &Reader{work: make(chan func()), ended: make(chan error, 1)}
	ready := make(chan struct{})
	go func() {
		// One thread for all files: making one takes longer than looking for a file.
		r.ended <- user.Run(func() error {
			close(ready)
			for f := range r.work {
				f()
			}
			return nil
		})
	}()
	select {
	case <-ready:
		return r, nil
	case err := <-r.ended:
		return nil, fmt.Errorf("read sources: %w", err)
	}
}

// Close ends the reader. Nothing is read with it afterwards.
func (r *Reader) Close() {
	close(r.work)
	<-r.ended
}

// Do calls f with the user's rights to files.
func (r *Reader) Do(f func()) {
	done := make(chan struct{})
	r.work <- func() { f(); close(done) }
	<-done
}

// Exists reports whether there is such a file, for Read to find, or to refuse.
func (r *Reader) Exists(root *os.File, path string) (is bool) {
	r.Do(func() { is = binary.ExistsWithoutLinks(root, path) })
	return is
}

// Read reads a source file below a root directory; a nil root is this process's own.
func (r *Reader) Read(root *os.File, path string, maxSize int64) (c Content, err error) {
	r.Do(func() { c, err = ReadInRoot(root, path, maxSize) })
	return c, err
}
