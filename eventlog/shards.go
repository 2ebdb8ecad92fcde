package eventlog

import (
	"encoding/binary"
	"io"
	"math"
)

// Shards are parts of a log, each of whole blocks, that can be read in parallel. If the log
// is undamaged (see Plain), the shards' records, one shard after the other, are those that a
// Reader of the whole log reads. The rest is what follows the last whole block.
type Shards struct {
	log  io.ReaderAt
	head *Reader
	list []shard
	rest int64 // its offset
	last uint64
}

type shard struct {
	from, to int64
	time     uint64 // of its first event
}

// Split makes shards of about the given number of bytes from a log of the given size, by
// its block markers. There are none if the log has no readable header.
func Split(log io.ReaderAt, size, each int64) *Shards {
	head := NewReader(io.NewSectionReader(log, 0, size))
	if !head.start() {
		return &Shards{log: log}
	}
	p := &Shards{log: log, head: head, rest: head.offset()}
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
			p.list = append(p.list, shard{from: at, time: binary.BigEndian.Uint64(b[2:])})
		}
		p.list[len(p.list)-1].to, p.rest = end, end
		p.last = max(p.last, binary.BigEndian.Uint64(b[14:]))
	}
}

// Len is the number of shards.
func (p *Shards) Len() int { return len(p.list) }

// Extent returns the time of the last event of the shards, as their block markers state it, and
// whether the log's end marker follows them.
func (p *Shards) Extent() (last uint64, ended bool) {
	var b [2]byte
	_, err := p.log.ReadAt(b[:], p.rest)
	return p.last, len(p.list) > 0 && err == nil && b == [2]byte{0xff, 0xff}
}

// Declares reports whether the log declares events of a type as this package knows it.
func (p *Shards) Declares(id uint16) bool { return p.head != nil && p.head.Declares(id) }

// Decoder makes a Decoder for records that the shards' Readers have copied.
func (p *Shards) Decoder() *Decoder { return p.head.Decoder() }

// Reader makes the Reader of a shard. Readers may be used concurrently.
func (p *Shards) Reader(i int) *Reader {
	x := &p.list[i]
	return p.from(io.NewSectionReader(p.log, x.from, x.to-x.from), x.from, [2]uint64{x.time, x.time})
}

// Rest makes a Reader of what follows the shards; last is the Reader of the last shard.
func (p *Shards) Rest(last *Reader) *Reader {
	return p.from(io.NewSectionReader(p.log, p.rest, math.MaxInt64-p.rest), p.rest, last.times)
}

func (p *Shards) from(r io.Reader, at int64, times [2]uint64) *Reader {
	return &Reader{
		r: r, buf: make([]byte, shardBuffer), base: at, started: true, times: times,
		types: p.head.Decoder().types, header: p.head.header, dataStart: p.head.dataStart, boundary: at,
	}
}

// shardBuffer is smaller than a CPU's cache, and large enough for the events of one read.
const shardBuffer = 256 << 10

// Plain reports whether every record of a shard is what a Reader of the whole log reads
// there. r has read the shard to its end; before is the previous shard's Reader, or nil. It
// is false if anything had to be judged by what surrounds it, as in damaged logs.
func (p *Shards) Plain(i int, r, before *Reader) bool {
	if before != nil && !before.agrees(p.list[i].time, farFit) {
		return false
	}
	return !r.judged && r.err == nil && !r.ended && r.pending == nil && !r.scan.on && r.offset() == p.list[i].to
}
