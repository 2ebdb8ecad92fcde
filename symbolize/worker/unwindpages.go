package worker

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"ccagent/internal/sandbox"
	"ccagent/symbolize/cfi"
)

// UnwindPage is the rows of a page of code, encoded as in an UnwindTable. The first is at the
// page's first address.
type UnwindPage struct {
	Number uint32 // address from UnwindTable.Base / cfi.PageBytes
	Rows   []byte
}

// UnwindPages compiles the call frame information of one large Haskell program by need: in
// a child, which is started when it is needed. It is not safe for concurrent use.
type UnwindPages struct {
	file  *os.File
	cache *UnwindCache
	key   string
	table UnwindTable // with all pages
	fresh bool        // it has more than the cache
	child *unwindPagesChild
}

type unwindPagesChild struct {
	*sandbox.Child
	cancel context.CancelFunc
}

// OpenUnwindPages returns a program's table of what its frame sections say, with the pages that
// the cache has of it. The file must stay open until Close. A nil cache keeps none.
func OpenUnwindPages(ctx context.Context, cache *UnwindCache, file *os.File) (*UnwindPages, UnwindTable) {
	p := &UnwindPages{file: file, cache: cache, key: cache.key(file)}
	if t, ok := cache.load(p.key); ok && t.Paged {
		p.table = t
		return p, t
	}
	if err := p.start(ctx); err != nil {
		p.table.Err = err
	}
	p.fresh = p.table.Err == nil
	return p, p.table
}

// pagesTime is what a child may take for an answer.
const pagesTime = 20 * time.Second

// maxPagesAsked bounds the pages of a request.
const maxPagesAsked = 64

// start starts the child, which first sends the table.
func (p *UnwindPages) start(parent context.Context) (err error) {
	ctx, cancel := context.WithCancel(parent)
	memory, _ := sandbox.FitMemory(unwindMemory)
	c, err := sandbox.Start(ctx, sandbox.Config{Role: roleUnwindPages, Name: "ccagent-symbolize", Memory: memory}, p.file)
	if err != nil {
		cancel()
		return fmt.Errorf("start its compiler: %w", err)
	}
	p.child = &unwindPagesChild{c, cancel}
	t, err := p.answer(func() (UnwindTable, error) { return receiveUnwind(c.Receive) })
	if err != nil {
		return err
	}
	if p.table.Rules == nil {
		p.table = t
		p.table.Paged = true
	} else if t.Base != p.table.Base || len(t.Rules) != len(p.table.Rules) {
		p.Stop()
		return errBadTable
	}
	return t.Err
}

// answer waits for the child's answer within its time; without one it is stopped.
func (p *UnwindPages) answer(receive func() (UnwindTable, error)) (UnwindTable, error) {
	timer := time.AfterFunc(pagesTime, p.child.cancel)
	t, err := receive()
	if !timer.Stop() && err != nil {
		err = fmt.Errorf("not done within %v", pagesTime)
	}
	if err != nil {
		stderr := p.Stop()
		if len(stderr) > 0 {
			err = describe(err, stderr)
		}
	}
	return t, err
}

// Compile compiles pages, and returns their rows in that order.
func (p *UnwindPages) Compile(ctx context.Context, pages []uint32) ([]UnwindPage, error) {
	if p.child == nil {
		if err := p.start(ctx); err != nil {
			return nil, err
		}
	}
	var all []UnwindPage
	for len(pages) > 0 {
		n := min(len(pages), maxPagesAsked)
		var ask []byte
		for _, page := range pages[:n] {
			ask = binary.LittleEndian.AppendUint32(ask, page)
		}
		_, err := p.answer(func() (UnwindTable, error) {
			if err := p.child.Send(0, ask); err != nil {
				return UnwindTable{}, err
			}
			for _, page := range pages[:n] {
				head, rows, err := p.child.Receive((cfi.PageBytes + 1) * cfi.RowSize)
				if err == nil {
					all = append(all, UnwindPage{page, rows})
					err = p.table.checkPage(&all[len(all)-1])
				}
				if err == nil && head != uint64(page) {
					err = errBadTable
				}
				if err != nil {
					return UnwindTable{}, err
				}
			}
			return UnwindTable{}, nil
		})
		if err != nil {
			return nil, err
		}
		pages = pages[n:]
	}
	p.table.Pages = append(p.table.Pages, all...)
	p.fresh = p.fresh || len(all) > 0
	return all, nil
}

// checkPage holds a page's rows against what the walker counts on.
func (t *UnwindTable) checkPage(p *UnwindPage) error {
	lo := uint64(p.Number) * cfi.PageBytes
	rows := UnwindTable{Rows: p.Rows, Rules: t.Rules}
	if err := rows.check(); err != nil || len(p.Rows) == 0 {
		return err
	}
	first, last := binary.LittleEndian.Uint32(p.Rows), binary.LittleEndian.Uint32(p.Rows[len(p.Rows)-cfi.RowSize:])
	if uint64(first) != lo || uint64(last) >= lo+cfi.PageBytes {
		return fmt.Errorf("%w: rows from %#x to %#x of the page at %#x", errBadTable, first, last, lo)
	}
	return nil
}

// Stop stops the child until it is needed again, and returns what it said of its end.
func (p *UnwindPages) Stop() (stderr []byte) {
	if p.child == nil {
		return nil
	}
	p.child.cancel()
	_ = p.child.Wait()
	stderr = p.child.Stderr()
	p.child = nil
	return stderr
}

// Close stops the child, and keeps what it has compiled for the next capture.
func (p *UnwindPages) Close() {
	p.Stop()
	if p.fresh {
		p.cache.keep(p.key, &p.table)
		p.fresh = false
	}
}

// unwindPages is the child's work: a table, then pages for each request.
func unwindPages(c *sandbox.Conn, files []*os.File) error {
	f, err := openFile(files[0])
	if err != nil {
		return sendUnwind(c.Send, nil, err)
	}
	pages, err := cfi.OpenPages(f, cfi.DefaultLimits)
	if err != nil {
		return sendUnwind(c.Send, nil, err)
	}
	if err := sendUnwind(c.Send, pages.Table(), nil); err != nil {
		return err
	}
	for {
		_, ask, err := c.Receive(4 * maxPagesAsked)
		if err != nil {
			return nil // the parent needs no more
		}
		for ; len(ask) >= 4; ask = ask[4:] {
			page := binary.LittleEndian.Uint32(ask)
			var rows []byte
			for _, r := range pages.Rows(page) {
				rows = r.Append(rows)
			}
			if err := c.Send(uint64(page), rows); err != nil {
				return nil
			}
		}
	}
}
