package threads

import (
	"fmt"
	"io"
)

// pageBytes is a unit of reading. Threads and their stacks mostly lie together.
const (
	pageBytes = 4 << 10
	pageSlots = 256
)

// mostAhead is how many pages are read at once where one after the other is asked for. Of a read of
// one page most of the time is that of the system call.
const mostAhead = 16

// pages caches memory for one pass over it.
type pages struct {
	memory io.ReaderAt
	ahead  bool // read more at once where one page after the other is asked for
	slots  [pageSlots]*page
	// lo and hi are what was read last.
	lo, hi uint64
	window [mostAhead * pageBytes]byte
	// used are the pages that were asked for since begin was called, in that order, some more than once.
	used []uint64
	// late tells pages apart that are not of the moment that is read; it may be nil. lateUses counts uses of such.
	late     func(page uint64) bool
	lateUses uint64
}

type page struct {
	at         uint64
	valid      bool
	used, late bool
	data       [pageBytes]byte
}

// begin begins a reading: nothing is cached or was used.
func (p *pages) begin() {
	p.used = p.used[:0]
	p.forget()
}

// use notes that a page was asked for.
func (p *pages) use(s *page) {
	if !s.used {
		s.used = true
		s.late = p.late != nil && p.late(s.at)
		if len(p.used) < maxUsed {
			p.used = append(p.used, s.at)
		}
	}
	if s.late {
		p.lateUses++
	}
}

// maxUsed bounds what is noted of a reading.
const maxUsed = 1 << 17

func (p *pages) forget() {
	for _, s := range p.slots {
		if s != nil {
			s.valid = false
		}
	}
}

// maxAddress is above every address of a program.
const maxAddress = 1 << 56

// read fills buf with memory.
func (p *pages) read(at uint64, buf []byte) error {
	if at >= maxAddress || at+uint64(len(buf)) >= maxAddress {
		return fmt.Errorf("read memory: %#x is no address of a program", at)
	}
	for len(buf) > 0 {
		begin := at &^ (pageBytes - 1)
		s := p.slots[begin/pageBytes%pageSlots]
		if s == nil || !s.valid || s.at != begin {
			if err := p.fetch(begin); err != nil {
				return fmt.Errorf("read memory: %w", err)
			}
			s = p.slots[begin/pageBytes%pageSlots]
		}
		p.use(s)
		n := copy(buf, s.data[at-begin:])
		buf, at = buf[n:], at+uint64(n)
	}
	return nil
}

// fetch reads the page at an address and, if it is to read ahead and what was read last lies next to
// it, twice as much as that in the same direction.
func (p *pages) fetch(begin uint64) error {
	size := min(2*(p.hi-p.lo), mostAhead*pageBytes)
	switch {
	case !p.ahead:
		p.lo, p.hi = begin, begin+pageBytes
	case begin >= p.hi && begin < p.hi+size: // upwards
		p.lo, p.hi = begin, begin+size
	case begin < p.lo && begin+pageBytes+size > p.lo && begin+pageBytes >= size: // downwards
		p.lo, p.hi = begin+pageBytes-size, begin+pageBytes
	default:
		p.lo, p.hi = begin, begin+pageBytes
	}
	if _, err := p.memory.ReadAt(p.window[:p.hi-p.lo], int64(p.lo)); err != nil {
		p.lo, p.hi = begin, begin+pageBytes // what lies next to it may be no memory
		if _, err := p.memory.ReadAt(p.window[:pageBytes], int64(begin)); err != nil {
			return err
		}
	}
	for at := p.lo; at < p.hi; at += pageBytes {
		slot := &p.slots[at/pageBytes%pageSlots]
		if *slot == nil {
			*slot = new(page)
		}
		(*slot).at, (*slot).valid, (*slot).used = at, true, false
		copy((*slot).data[:], p.window[at-p.lo:])
	}
	return nil
}
