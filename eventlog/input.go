package eventlog

import (
	"errors"
	"fmt"
	"io"
)

// maxEvent is the largest event's size.
const maxEvent = 12 + maxPayload

// lookahead is the size of the events that resynchronising looks at from one place.
const lookahead = chain * maxEvent

// The buffer grows where resynchronising asks for more than an event. At its largest
// it has room for twice what is asked for, so that a search which goes on byte by byte
// moves each byte to the buffer's beginning about once, not once a step.
const (
	// firstBuffer holds the header of a log, and minBuffer is what there is from then on: who asks for the beginning of a log alone has
	// it without.
	firstBuffer = 16 << 10

	minBuffer = 2 * maxEvent
	maxAsked  = maxEvent + lookahead
	maxBuffer = 2 * maxAsked
)

// input is a log's bytes, of which a part is in memory.
type input struct {
	r     io.Reader
	buf   []byte
	pos   int   // next byte to take
	end   int   // end of what is in buf
	base  int64 // offset in the log of buf[0]
	eof   bool
	ioErr error

	growing bool  // the log may go on where it ends now
	starved bool  // the next bytes cannot be judged before more of the log arrives
	work    int64 // what judging and buffering have cost: events judged and bytes moved or searched
}

// offset is that of the next byte in the log.
func (in *input) offset() int64 { return in.base + int64(in.pos) }

// need makes n bytes available from pos on and returns how many there are, which is fewer
// only at the end of the log. n is at most maxAsked.
func (in *input) need(n int) int {
	if in.end-in.pos >= n {
		return in.end - in.pos
	}
	return in.fill(n)
}

func (in *input) fill(n int) int {
	for empty := 0; in.end-in.pos < n && !in.eof; {
		if in.end == len(in.buf) {
			in.makeRoom()
		}
		m, err := in.r.Read(in.buf[in.end:])
		in.end += m
		if m == 0 && err == nil {
			if empty++; empty == 100 {
				err = io.ErrNoProgress
			}
		}
		if err != nil {
			in.eof = true
			if !errors.Is(err, io.EOF) {
				in.ioErr = fmt.Errorf("read eventlog: %w", err)
			}
		}
	}
	return in.end - in.pos
}

// makeRoom moves what is left in the buffer to its beginning, or grows it.
func (in *input) makeRoom() {
	buf := in.buf
	if in.pos == 0 || len(buf) < minBuffer {
		buf = make([]byte, min(max(2*len(buf), minBuffer), maxBuffer))
	}
	in.base += int64(in.pos)
	in.end = copy(buf, in.buf[in.pos:in.end])
	in.work += int64(in.end)
	in.buf, in.pos = buf, 0
}

// wait reports whether there may be more of the log than there is now.
func (in *input) wait() bool {
	if in.growing && in.ioErr == nil {
		in.starved = true
	}
	return in.starved
}
