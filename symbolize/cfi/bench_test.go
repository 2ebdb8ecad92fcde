package cfi

import (
	"path/filepath"
	"testing"

	"ccagent/internal/elftest"
	"ccagent/internal/testprog"
)

func benchmark(b *testing.B, path string) {
	f := elftest.Open(b, path)
	var t *Table
	for b.Loop() {
		var err error
		if t, err = Compile(f, DefaultLimits); err != nil {
			b.Fatal(err)
		}
	}
	bytes := float64(len(t.Rows)*RowSize + len(t.Rules)*RuleSize)
	b.ReportMetric(float64(len(t.Rows)), "rows")
	b.ReportMetric(float64(len(t.Rules)), "rules")
	b.ReportMetric(bytes/float64(len(t.Rows)), "B/row")
	b.ReportMetric(float64(len(t.Rows)*b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkCompile compiles the tables of whole files.
func BenchmarkCompile(b *testing.B) {
	for _, path := range systemLibraries(b) {
		b.Run(filepath.Base(path), func(b *testing.B) { benchmark(b, path) })
	}
	b.Run("example", func(b *testing.B) { benchmark(b, testprog.Build(b, "example", testprog.Options{})) })
	ghc, _ := testprog.GHC(b, "")
	if libraries, _ := filepath.Glob(filepath.Join(filepath.Dir(ghc), "../lib/ghc/*/libHS[bg][ah][sc]*-ghc*.so")); len(libraries) > 0 {
		for _, path := range libraries {
			b.Run(filepath.Base(path), func(b *testing.B) { benchmark(b, path) })
		}
	}
}

// BenchmarkLookup looks up addresses in a compiled table.
func BenchmarkLookup(b *testing.B) {
	t := compile(b, systemLibraries(b)[0], DefaultLimits)
	last := t.Rows[len(t.Rows)-1].Addr
	for addr := uint32(0); b.Loop(); addr += 4099 {
		t.Lookup(t.Base + uint64(addr%last))
	}
}
