package profile_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/profile/stacks"
	"ccagent/profile/timeline"
)

func generated(b testing.TB, samples, stacks int) []byte {
	b.Helper()
	var buf bytes.Buffer
	if err := logtest.Generate(&buf, samples, stacks, 1); err != nil {
		b.Fatal(err)
	}
	return buf.Bytes()
}

func BenchmarkLoad(b *testing.B) {
	const n = 1_000_000
	log := generated(b, n, 20_000)
	b.ReportAllocs()
	b.SetBytes(int64(len(log)))
	var p *profile.Profile
	begin := cpuTime()
	for b.Loop() {
		p, _ = profile.Load(bytes.NewReader(log))
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e6, "Msamples/s")
	b.ReportMetric(float64(b.N)*n/(cpuTime()-begin).Seconds()/1e6, "Msamples/cpu-s")
	var m runtime.MemStats
	before := func() uint64 { runtime.GC(); runtime.ReadMemStats(&m); return m.HeapAlloc }
	with := before()
	runtime.KeepAlive(p)
	p = nil
	b.ReportMetric(float64(with-before())/n, "B/sample")
}

func BenchmarkTotals(b *testing.B) {
	const n = 1_000_000
	path := filepath.Join(b.TempDir(), "log.eventlog")
	log := generated(b, n, 20_000)
	if err := os.WriteFile(path, log, 0o600); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(log)))
	begin := cpuTime()
	for b.Loop() {
		p, err := profile.OpenTotals(path, nil)
		if err != nil || p.Samples() != n {
			b.Fatal("not all samples: ", err)
		}
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e6, "Msamples/s")
	b.ReportMetric(float64(b.N)*n/(cpuTime()-begin).Seconds()/1e6, "Msamples/cpu-s")
}

func BenchmarkSelectAndHot(b *testing.B) {
	p, err := profile.Load(bytes.NewReader(generated(b, 1_000_000, 20_000)))
	if err != nil {
		b.Fatal(err)
	}
	for _, level := range profile.Levels {
		b.Run(fmt.Sprint(level), func(b *testing.B) {
			for b.Loop() {
				p.Select(profile.Filter{}).Hot(level)
			}
		})
	}
	s := p.Select(profile.Filter{})
	b.Run("select", func(b *testing.B) {
		for b.Loop() {
			p.Select(profile.Filter{})
		}
	})
	b.Run("tree", func(b *testing.B) {
		for b.Loop() {
			stacks.TreeOf(s, stacks.Options{})
		}
	})
	b.Run("inverted", func(b *testing.B) {
		for b.Loop() {
			stacks.TreeOf(s, stacks.Options{Invert: true})
		}
	})
	b.Run("timeline", func(b *testing.B) {
		for b.Loop() {
			timeline.Of(s, timeline.Options{Buckets: 120})
		}
	})
}

func cpuTime() time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
