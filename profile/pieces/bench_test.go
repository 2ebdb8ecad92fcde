package pieces_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"ccagent/eventlog"
	"ccagent/profile/logtest"
	"ccagent/profile/pieces"
)

// BenchmarkOpen opens an hour of ten processes as one log: a million samples in 600 pieces.
func BenchmarkOpen(b *testing.B) {
	const processes, minutes, samples = 10, 60, 1667
	dir := b.TempDir()
	for p := range processes {
		var log bytes.Buffer
		if err := logtest.Generate(&log, samples, 300, uint64(p)); err != nil {
			b.Fatal(err)
		}
		for m := range minutes {
			name := fmt.Sprintf("/bin/generated%d", p)
			text := logtest.Of(log.Bytes(), eventlog.Capture{PID: uint32(100 + p), Program: name}, uint64(60*m))
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d-%d%s", p, m, pieces.Extension)), text, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	all, problems, err := pieces.Scan(dir)
	if err != nil || len(problems) > 0 || len(all) != processes*minutes {
		b.Fatal(len(all), problems, err)
	}
	begin := cpuTime(b)
	for b.Loop() {
		p, left, err := pieces.Open(all, pieces.Span{}, nil)
		if err != nil || left > 0 || p.Samples() != processes*minutes*samples {
			b.Fatal(left, err)
		}
	}
	b.ReportMetric((cpuTime(b)-begin).Seconds()/float64(b.N), "cpu-s/op")
}

func cpuTime(b *testing.B) time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
