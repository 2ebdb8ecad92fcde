package dump

import (
	"errors"
	"slices"
	"time"

	"ccagent/agent/process"
	"ccagent/heap/threads"
)

// moment is a process's memory as it was at a moment: copies of pages that were made while the threads that run Haskell
// code stood. It is an io.ReaderAt. What it has no copy of is read from the process as it is now, which is late.
type moment struct {
	live *process.Memory
	at   map[uint64]int // of a page: its place in buf
	buf  []byte
	free int // where the next page is copied to
	// until is when copying has to end. While it is set, what there is no copy of is copied when it is read.
	until time.Time
}

// errLate is why a page was not copied: the time for which threads may stand is over.
var errLate = errors.New("the time for which threads may be stopped is over")

// over reports whether the time for copying is.
func (m *moment) over() bool { return !time.Now().Before(m.until) }

// batchPages are copied by one system call, after which the time is looked at.
const batchPages = 128

// There is room for mostPages that are known to be needed, far more than can be copied while threads stand, since it is the
// process that decides how many it has; and for as many that were not known, which are all of them if a collection has moved them, or
// leastSpare.
const (
	mostPages  = 1 << 14
	leastSpare = 1 << 10
)

// drop forgets all copies: reads are of the process as it is.
func (m *moment) drop() { m.at, m.free, m.until = nil, 0, time.Time{} }

// prepare allocates memory for copies of pages and more, which the kernel gives here, before any thread stands. It returns
// those of the pages that there is room for, sorted in each batch.
func (m *moment) prepare(pages []uint64) []uint64 {
	m.drop()
	pages = pages[:min(len(pages), mostPages)]
	for batch := range slices.Chunk(pages, batchPages) {
		slices.Sort(batch)
	}
	room := len(pages) + max(len(pages), leastSpare)
	m.at = make(map[uint64]int, room)
	if need := room * threads.PageBytes; len(m.buf) < need {
		m.buf = make([]byte, need)
	}
	for i := 0; i < len(m.buf); i += threads.PageBytes {
		m.buf[i] = 1
	}
	return pages
}

// copy copies pages that are not yet, as many as there is time and room for: what was not known to be needed may have taken more
// than its part.
func (m *moment) copy(pages []uint64) {
	want := make([]uint64, 0, batchPages)
	for batch := range slices.Chunk(pages, batchPages) {
		want = want[:0]
		for _, page := range batch {
			if _, copied := m.at[page]; !copied {
				want = append(want, page)
			}
		}
		want = want[:min(len(want), (len(m.buf)-m.free)/threads.PageBytes)]
		if m.over() {
			return
		}
		if len(want) == 0 {
			continue
		}
		into := m.buf[m.free : m.free+len(want)*threads.PageBytes]
		if m.live.Scattered(want, into) == nil {
			for _, page := range want {
				m.at[page] = m.free
				m.free += threads.PageBytes
			}
		} else {
			for _, page := range want { // one of them is not there any more
				_ = m.page(page)
			}
		}
	}
}

// page copies a page.
func (m *moment) page(page uint64) error {
	if m.free+threads.PageBytes > len(m.buf) || m.over() {
		return errLate
	}
	if _, err := m.live.ReadAt(m.buf[m.free:m.free+threads.PageBytes], int64(page)); err != nil {
		return err
	}
	m.at[page] = m.free
	m.free += threads.PageBytes
	return nil
}

// late reports whether a page is not of the moment, if there is one.
func (m *moment) late(page uint64) bool {
	if m.at == nil {
		return false
	}
	_, copied := m.at[page]
	return !copied
}

// ReadAt reads from the copies, and what there is none of from the process.
func (m *moment) ReadAt(b []byte, at int64) (int, error) {
	if m.at == nil {
		return m.live.ReadAt(b, at)
	}
	done := 0
	for done < len(b) {
		from := uint64(at) + uint64(done)
		page := from &^ (threads.PageBytes - 1)
		place, copied := m.at[page]
		if !copied && !m.until.IsZero() {
			if err := m.page(page); err != nil {
				return done, err
			}
			place, copied = m.at[page], true
		}
		part := b[done:min(len(b), done+int(page+threads.PageBytes-from))]
		if copied {
			copy(part, m.buf[place+int(from-page):])
		} else if _, err := m.live.ReadAt(part, int64(from)); err != nil {
			return done, err
		}
		done += len(part)
	}
	return done, nil
}
