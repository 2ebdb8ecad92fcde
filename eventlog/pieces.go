package eventlog

import (
	"encoding/binary"
	"io"
	"math"
)

// Pieces are stretches of a log's blocks that can be read beside each other: where
// the log is plain, their records are those of a Reader of the whole, one piece
// after the other. What is no whole block, and all that follows, is the rest.
type Pieces struct {
	log  io.ReaderAt
	head *Reader
	list []piece
	rest int64 // its offset
}

type piece struct {
	from, to int64
	time     uint64 // of its first event
}

// Split walks the block markers of a log of so many bytes, and makes pieces of about
// the given number of bytes. It gives none where there is no readable header.
func Split(log io.ReaderAt, size, each int64) *Pieces {
	head := NewReader(io.NewSectionReader(log, 0, size))
	if !head.start() {
		return &Pieces{log: log}
	}
	p := &Pieces{log: log, head: head, rest: head.offset()}
	var b [blockMarkerLen]byte
	if !head.Declares(IDBlockMarker) {
		return p
	}
	for {
		at := p.rest
		if _, err := log.ReadAt(b[:], at); err != nil || binary.BigEndian.Uint16(b[:]) != IDBlockMarker {
			return p
		}
		end := at + int64(binary.BigEndian.Uint32(b[10:]))
		if _, shape, _ := head.marker(b[:], at); !shape || end > size {
			return p
		}
		if n := len(p.list); n == 0 || p.list[n-1].to-p.list[n-1].from >= each {
			p.list = append(p.list, piece{from: at, time: binary.BigEndian.Uint64(b[2:])})
		}
		p.list[len(p.list)-1].to, p.rest = end, end
	}
}

// Len is the number of pieces.
func (p *Pieces) Len() int { return len(p.list) }

// Declares reports whether the log declares events of a type as this package knows it.
func (p *Pieces) Declares(id uint16) bool { return p.head != nil && p.head.Declares(id) }

// Decoder decodes records that the pieces' Readers copied.
func (p *Pieces) Decoder() *Decoder { return p.head.Decoder() }

// Reader reads a piece. Readers may be used beside each other.
func (p *Pieces) Reader(i int) *Reader {
	x := &p.list[i]
	return p.from(io.NewSectionReader(p.log, x.from, x.to-x.from), x.from, [2]uint64{x.time, x.time})
}

// Rest reads what follows the pieces, of which the last was read by a Reader.
func (p *Pieces) Rest(last *Reader) *Reader {
	return p.from(io.NewSectionReader(p.log, p.rest, math.MaxInt64-p.rest), p.rest, last.times)
}

func (p *Pieces) from(r io.Reader, at int64, times [2]uint64) *Reader {
	return &Reader{
		r: r, buf: make([]byte, pieceBuffer), base: at, started: true, times: times,
		types: p.head.Decoder().types, header: p.head.header, dataStart: p.head.dataStart, boundary: at,
	}
}

// pieceBuffer is less than a CPU's cache, and enough for the events of one read.
const pieceBuffer = 256 << 10

// Plain reports of a piece whose Reader has come to its end whether every record
// of it is what a Reader of the whole log reads there, if before is the Reader of
// the piece before, or nil. It is not if anything had to be judged by what
// surrounds it, as damage has.
func (p *Pieces) Plain(i int, r, before *Reader) bool {
	if before != nil && !before.agrees(p.list[i].time, farFit) {
		return false
	}
	return !r.judged && r.err == nil && !r.ended && r.pending == nil && !r.scan.on && r.offset() == p.list[i].to
}
