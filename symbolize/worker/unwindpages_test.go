package worker

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"ccagent/internal/sandbox"
	"ccagent/internal/testprog"
	"ccagent/symbolize/cfi"
)

// A child's pages are those that this process would make; the next capture has them from the
// cache, and asks a new child for others.
func TestUnwindPages(t *testing.T) {
	file, err := os.Open(testprog.Build(t, "rev", testprog.Options{Strip: true}))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f, err := openFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := cfi.OpenPages(f, cfi.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	cache := &UnwindCache{Dir: filepath.Join(t.TempDir(), "index"), UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	for round, pages := range [][]uint32{{3, 0, 5}, {1, 1 << 30}} {
		p, table := OpenUnwindPages(t.Context(), cache, file)
		if table.Err != nil || !table.Paged || table.Base != want.Table().Base || len(table.Rows) != len(want.Table().Rows)*cfi.RowSize {
			t.Fatalf("base %#x, %d bytes of rows, paged %t, %v", table.Base, len(table.Rows), table.Paged, table.Err)
		}
		if len(table.Pages) != 3*round || (p.child == nil) != (round == 1) {
			t.Errorf("round %d begins with %d pages, and a child: %t", round, len(table.Pages), p.child != nil)
		}
		got, err := p.Compile(t.Context(), pages)
		if err != nil || len(got) != len(pages) {
			t.Fatalf("%d pages of %d, %v", len(got), len(pages), err)
		}
		for i, page := range got {
			var rows []byte
			for _, r := range want.Rows(pages[i]) {
				rows = r.Append(rows)
			}
			if page.Number != pages[i] || !bytes.Equal(page.Rows, rows) {
				t.Errorf("page %d has %d bytes of rows, want %d of page %d", page.Number, len(page.Rows), len(rows), pages[i])
			}
		}
		before := sandbox.CPUTime()
		p.Close()
		if sandbox.CPUTime() == before {
			t.Error("the child has cost nothing")
		}
	}
}

// A file that cannot be read, and a cancelled context, give an error.
func TestUnwindPagesFail(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no program\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for path, ctx := range map[string]context.Context{text: t.Context(), "/proc/self/exe": cancelled} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		p, table := OpenUnwindPages(ctx, nil, f)
		if table.Err == nil {
			t.Errorf("%s: a table of %d bytes", path, len(table.Rows))
		}
		p.Close()
	}
}

// Rows of a page that are not the page's are refused.
func TestCheckPage(t *testing.T) {
	table := &UnwindTable{Rules: make([]byte, 2*cfi.RuleSize)}
	page := func(rows ...cfi.Row) *UnwindPage {
		p := &UnwindPage{Number: 2}
		for _, r := range rows {
			p.Rows = r.Append(p.Rows)
		}
		return p
	}
	const lo = 2 * cfi.PageBytes
	if err := table.checkPage(page(cfi.Row{Addr: lo}, cfi.Row{Addr: lo + cfi.PageBytes - 1, Rule: 1})); err != nil {
		t.Error(err)
	}
	for what, p := range map[string]*UnwindPage{
		"a row too early":      page(cfi.Row{Addr: lo - 1}),
		"no row at its start":  page(cfi.Row{Addr: lo + 1}),
		"a row of the next":    page(cfi.Row{Addr: lo}, cfi.Row{Addr: lo + cfi.PageBytes}),
		"a rule that is not":   page(cfi.Row{Addr: lo, Rule: 2}),
		"rows that go back":    page(cfi.Row{Addr: lo}, cfi.Row{Addr: lo + 8}, cfi.Row{Addr: lo + 4}),
		"a part of a row":      {Number: 2, Rows: make([]byte, 4)},
		"beyond any addresses": {Number: 1 << 31, Rows: make([]byte, 8)},
	} {
		if table.checkPage(p) == nil {
			t.Errorf("a page with %s is taken", what)
		}
	}
}
