package agent

import (
	"bufio"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/perf"
)

// phases is a program that writes CLOCK_MONOTONIC, ns, as it was at its own first instructions, at the end of its first phase, at
// the begin of its second one and at its end.
const phases = `
#include <stdio.h>
#include <time.h>
static long long now(clockid_t c) { struct timespec t; clock_gettime(c, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static long long begun;
static volatile unsigned long n;
__attribute__((constructor)) static void early(void) { begun = now(CLOCK_MONOTONIC); }
__attribute__((noinline)) void first(void) { for (unsigned long i = 0; i < 20000000; i++) n += i; }
__attribute__((noinline)) void second(void) { for (unsigned long i = 0; i < 20000000; i++) n ^= i; }
static void phase(void (*f)(void)) { for (long long end = now(CLOCK_PROCESS_CPUTIME_ID) + 100000000; now(CLOCK_PROCESS_CPUTIME_ID) < end;) f(); }
int main(int argc, char **argv) {
  phase(first);
  long long one = now(CLOCK_MONOTONIC), two = now(CLOCK_MONOTONIC);
  phase(second);
  FILE *out = fopen(argv[1], "w");
  fprintf(out, "%lld %lld %lld %lld", begun, one, two, now(CLOCK_MONOTONIC));
  return fclose(out);
}
`

// A started program's log begins with the program's first instruction, not with the agent's
// preparations, whether it has a dynamic linker or not: by the program's own clock.
func TestTimeBeginsWithTheProgram(t *testing.T) {
	testprog.NeedRoot(t)
	for name, flags := range map[string][]string{"static": {"-static"}, "dynamic": nil} {
		t.Run(name, func(t *testing.T) {
			exe := testprog.CompileC(t, phases, append(flags, "-O1", "-no-pie")...)
			dir := t.TempDir()
			told, path := filepath.Join(dir, "told"), filepath.Join(dir, "log.eventlog")
			var ready uint64 // when the agent had prepared itself
			if _, err := Run(t.Context(), make(chan struct{}), Options{
				Program: []string{exe, told}, Events: []string{"cpu-clock"}, MaxFrames: 16, Output: path, Warn: func(line string) { t.Log(line) },
				Started: func(*os.File, int) error { ready = perf.Monotonic(); return nil },
			}); err != nil {
				t.Fatal(err)
			}
			var p struct{ begun, one, two, end uint64 }
			text, err := os.ReadFile(told)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Sscan(string(text), &p.begun, &p.one, &p.two, &p.end); err != nil {
				t.Fatal(err)
			}

			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var zero uint64 // CLOCK_MONOTONIC at the log's time 0
			code := codeOf(t, exe)
			leaves := map[uint32]string{}
			samples := map[string][]uint64{} // times by phase
			r := eventlog.NewReader(bufio.NewReader(f))
			for r.Next() {
				at := r.Record().Time
				switch e := r.Record().Event.(type) {
				case *eventlog.Capture:
					zero = e.StartUnixNs - wallAtBoot()
				case *eventlog.Nodes:
					for i, n := range e.Nodes {
						leaves[e.First+uint32(i)] = code(n.Addr)
					}
				case *eventlog.Sample:
					samples[leaves[e.Node]] = append(samples[leaves[e.Node]], at)
				}
			}
			if err := r.Err(); err != nil {
				t.Fatal(err)
			}
			const slack = uint64(time.Millisecond) // of the wall clock, which may be adjusted meanwhile
			if zero+slack < ready || zero > p.begun+slack {
				t.Errorf("time 0 is %d, but the agent was ready at %d and the program began at %d", zero, ready, p.begun)
			}
			first, second := samples["first"], samples["second"]
			if len(first) == 0 || len(second) == 0 {
				t.Fatalf("%d and %d samples of the two phases", len(first), len(second))
			}
			for _, c := range []struct {
				what     string
				at, must uint64
				late     bool
			}{
				{"first sample of the first phase", zero + slices.Min(first), p.begun, true},
				{"last sample of the first phase", zero + slices.Max(first), p.one, false},
				{"first sample of the second phase", zero + slices.Min(second), p.two, true},
				{"last sample of the second phase", zero + slices.Max(second), p.end, false},
			} {
				if c.late && c.at+slack < c.must || !c.late && c.at > c.must+slack {
					t.Errorf("%s: %d, and the program says %d", c.what, c.at, c.must)
				}
			}
		})
	}
}

// codeOf gives the names of a program's functions by address.
func codeOf(t *testing.T, exe string) func(addr uint64) string {
	t.Helper()
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	return func(addr uint64) string {
		i := slices.IndexFunc(symbols, func(s elf.Symbol) bool {
			return elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value <= addr && addr-s.Value < s.Size
		})
		if i < 0 {
			return ""
		}
		return symbols[i].Name
	}
}

// wallAtBoot is the wall clock when CLOCK_MONOTONIC was 0.
func wallAtBoot() uint64 {
	least, wall := ^uint64(0), uint64(0)
	for range 100 {
		before := perf.Monotonic()
		now := uint64(time.Now().UnixNano())
		if took := perf.Monotonic() - before; took < least {
			least, wall = took, now-before
		}
	}
	return wall
}
