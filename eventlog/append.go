package eventlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// LogFile is what Append needs of a log; *os.File is one.
type LogFile interface {
	io.ReadWriteSeeker
	io.WriterAt
	Truncate(size int64) error
}

// Append opens a log to write more events after those it has, which it reads
// all. The end marker and what is unreadable after the last event are removed,
// and a block that was cut off is made to end with its last event; damage
// before that stays. No event is lost if the process is killed meanwhile.
//
// Only events that the log's header declares can be written, so opts.Types is
// not used. opts may be nil. The error is a *HeaderError for what is no log.
func Append(f LogFile, opts *WriterOptions) (*Writer, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("append to eventlog: %w", err)
	}
	tail, types, err := findTail(f)
	if err != nil {
		return nil, fmt.Errorf("append to eventlog: %w", err)
	}
	declaresMarker := func(t EventType) bool { return t.ID == IDBlockMarker && t.Size == kindOf[t.ID].Size }
	if !slices.ContainsFunc(types, declaresMarker) {
		return nil, errors.New("append to eventlog: its header does not declare block markers as they are written now; append to what ccview export --to eventlog makes of it")
	}
	if err := tail.trim(f); err != nil {
		return nil, fmt.Errorf("append to eventlog: %w", err)
	}
	var o WriterOptions
	if opts != nil {
		o = *opts
	}
	o.Types = types
	w := NewWriter(f, &o)
	w.header, w.held = nil, 0
	return w, nil
}

// tail is where a log's readable events end.
type tail struct {
	end      int64  // offset after the last event
	block    int64  // offset of the last block's marker, if it reaches beyond; else -1
	lastTime uint64 // of the last event
}

func findTail(f io.Reader) (tail, []EventType, error) {
	t := tail{block: -1}
	r := NewReader(f)
	for r.Next() {
		if t.end == 0 {
			t.end = r.dataStart
		}
		if _, bad := r.Record().Event.(*Malformed); bad {
			continue
		}
		t.end, t.lastTime, t.block = r.offset(), r.Record().Time, -1
		if r.blockEnd > t.end && r.blockEnd != math.MaxInt64 {
			t.block = r.blockAt
		}
	}
	if t.end == 0 {
		t.end = r.dataStart
	}
	if t.block == t.end-blockMarkerLen {
		t.end, t.block = t.block, -1 // none of the block's events is there
	}
	return t, r.Types(), r.Err()
}

// trim makes the file end with the last event.
func (t tail) trim(f LogFile) error {
	if err := f.Truncate(t.end); err != nil {
		return err
	}
	if t.block >= 0 {
		var b [12]byte
		binary.BigEndian.PutUint32(b[:], uint32(t.end-t.block))
		binary.BigEndian.PutUint64(b[4:], t.lastTime)
		if _, err := f.WriteAt(b[:], t.block+10); err != nil {
			return err
		}
	}
	_, err := f.Seek(t.end, io.SeekStart)
	return err
}
