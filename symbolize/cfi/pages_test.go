package cfi

import (
	"testing"

	"ccagent/internal/elftest"
	"ccagent/internal/testprog"
)

// Pages give the rows that Compile gives for the whole code, but for few bytes; where both have a
// rule it is the same, but for some of the run-time system's generic application, where distances are guessed.
func TestPages(t *testing.T) {
	for name, options := range map[string]testprog.Options{
		"with notes": {}, "stripped": {Strip: true}, "position-independent": {Dynamic: true, Strip: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := elftest.Open(t, testprog.Build(t, "rev", options))
			whole, err := Compile(f, DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			pages, err := OpenPages(f, DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			table := pages.Table()
			var same, missing, other int
			for page := uint32(0); ; page++ {
				rows := pages.Rows(page)
				if rows == nil {
					break
				}
				checkPage(t, table, page, rows)
				for a, i := page*PageBytes, 0; a < (page+1)*PageBytes; a++ {
					for i+1 < len(rows) && rows[i+1].Addr <= a {
						i++
					}
					got, want := table.Rules[rows[i].Rule], whole.Lookup(table.Base+uint64(a))
					switch {
					case got == want:
						same++
					case got.Kind == KindNone:
						missing++
					case want.Kind != KindNone:
						other++
					}
				}
			}
			t.Logf("%d bytes with the same rule, %d without, %d with another", same, missing, other)
			if same == 0 || missing*50 > same || other*50 > same {
				t.Errorf("%d bytes with the same rule, %d without, %d with another", same, missing, other)
			}
		})
	}
}

func checkPage(t *testing.T, table *Table, page uint32, rows []Row) {
	t.Helper()
	if rows[0].Addr != page*PageBytes {
		t.Fatalf("the first row of page %d is at %#x", page, rows[0].Addr)
	}
	for i, r := range rows {
		if int(r.Rule) >= len(table.Rules) || r.Addr >= (page+1)*PageBytes || i > 0 && r.Addr <= rows[i-1].Addr {
			t.Fatalf("row %d of page %d of %v", i, page, rows)
		}
	}
}

// BenchmarkPage compiles one page after the other.
func BenchmarkPage(b *testing.B) {
	pages, err := OpenPages(elftest.Open(b, testprog.Build(b, "example", testprog.Options{})), DefaultLimits)
	if err != nil {
		b.Fatal(err)
	}
	count := uint32((pages.hi - pages.lo) / PageBytes)
	for page := uint32(0); b.Loop(); page++ {
		pages.Rows(page % count)
	}
}
