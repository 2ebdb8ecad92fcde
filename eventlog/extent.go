package eventlog

import (
	"encoding/binary"
	"io"
)

// Extent returns the time of the last event of a log of the given size, as its block markers
// state it, and whether the log has its end marker. It is 0 of what is no log.
func Extent(log io.ReaderAt, size int64) (last uint64, ended bool) {
	r := NewReader(io.NewSectionReader(log, 0, size))
	if !r.Declares(IDBlockMarker) {
		return 0, false
	}
	at := r.in.offset()
	for begin := at; ; {
		var b [blockMarkerLen]byte
		n, err := log.ReadAt(b[:], at)
		_, shape, _ := r.judge.marker(b[:], at)
		end := at + int64(binary.BigEndian.Uint32(b[10:]))
		if err != nil || binary.BigEndian.Uint16(b[:]) != IDBlockMarker || !shape || end > size {
			return last, at > begin && n >= 2 && binary.BigEndian.Uint16(b[:]) == idEnd
		}
		last, at = max(last, binary.BigEndian.Uint64(b[14:])), end
	}
}
