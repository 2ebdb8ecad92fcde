package symbolize

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// BenchmarkRun resolves an address in every 16 bytes of a program's code: far
// more than a capture sees. The program is CCAGENT_BENCH_ELF, or one of the test
// programs. Peak RSS is the process's own, so run it alone and once:
//
//	go test -run '^$' -bench Run -benchtime 1x ./symbolize
func BenchmarkRun(b *testing.B) {
	path := os.Getenv("CCAGENT_BENCH_ELF")
	if path == "" {
		path = testprog.Build(b, "example", testprog.Options{})
	}
	m := module(b, path, codeAddresses(b, path, 16)...)
	var sum Summary
	for b.Loop() {
		var err error
		if sum, err = Run(context.Background(), Job{Modules: []Module{m}}, func(eventlog.Event) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(sum.Addresses)*float64(b.N)/b.Elapsed().Seconds(), "addresses/s")
	b.ReportMetric(float64(sum.Blocks), "blocks")
	b.ReportMetric(float64(peakRSS(b))/(1<<20), "MB-peak")
}

// peakRSS is the largest resident set that this process had, in bytes.
func peakRSS(b *testing.B) (kb uint64) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			fmt.Sscan(rest, &kb)
		}
	}
	return kb << 10
}
