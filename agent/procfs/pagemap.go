package procfs

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"os"
)

// Pages says which pages of a stretch of a process's memory are in memory.
type Pages struct {
	Start, End uint64
	page       uint64   // bytes
	present    []uint64 // a bit a page
}

// maxPages bounds the pages of a stretch: 1 TB of the smallest.
const maxPages = 1 << 28

// ReadPages reads which pages from start to end are in memory, from /proc/PID/pagemap.
func ReadPages(pid int, start, end uint64) (*Pages, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readPages(f, uint64(os.Getpagesize()), start, end)
}

// PagesOf makes Pages of what is known of each page, by its number from the start.
func PagesOf(start, end, page uint64, present func(page uint64) bool) *Pages {
	p := &Pages{Start: start, End: end, page: page, present: make([]uint64, ((end-start)/page+63)/64)}
	for i := range (end - start) / page {
		if present(i) {
			p.present[i/64] |= 1 << (i % 64)
		}
	}
	return p
}

// Of an entry of pagemap the highest bit says whether the page is in memory.
const (
	pagemapEntry   = 8
	pagemapPresent = 1 << 63
)

func readPages(f io.ReaderAt, page, start, end uint64) (*Pages, error) {
	start, end = start/page*page, (end+page-1)/page*page
	if end < start || (end-start)/page > maxPages {
		return nil, fmt.Errorf("read which pages are in memory: from %#x to %#x is too far", start, end)
	}
	p := &Pages{Start: start, End: end, page: page, present: make([]uint64, ((end-start)/page+63)/64)}
	buf := make([]byte, min(64<<10, (end-start)/page*pagemapEntry))
	for first := uint64(0); first < (end-start)/page; {
		part := buf[:min(uint64(len(buf)), ((end-start)/page-first)*pagemapEntry)]
		if _, err := f.ReadAt(part, int64((start/page+first)*pagemapEntry)); err != nil {
			return nil, fmt.Errorf("read which pages are in memory: %w", err)
		}
		for i := 0; i+pagemapEntry <= len(part); i += pagemapEntry {
			if binary.NativeEndian.Uint64(part[i:])&pagemapPresent != 0 {
				p.present[first/64] |= 1 << (first % 64)
			}
			first++
		}
	}
	return p, nil
}

// Resident is how many of the bytes from one address up to another lie in pages that are in memory.
func (p *Pages) Resident(from, to uint64) (n uint64) {
	from, to = max(from, p.Start), min(to, p.End)
	if from >= to {
		return 0
	}
	first, last := (from-p.Start)/p.page, (to-1-p.Start)/p.page
	for w := first / 64; w <= last/64; w++ {
		b := p.present[w]
		if w == first/64 {
			b &= ^uint64(0) << (first % 64)
		}
		if w == last/64 {
			b &= ^uint64(0) >> (63 - last%64)
		}
		n += uint64(bits.OnesCount64(b)) * p.page
	}
	if p.has(first) {
		n -= (from - p.Start) % p.page
	}
	if p.has(last) {
		n -= p.page - ((to-1-p.Start)%p.page + 1)
	}
	return n
}

func (p *Pages) has(i uint64) bool { return p.present[i/64]>>(i%64)&1 != 0 }
