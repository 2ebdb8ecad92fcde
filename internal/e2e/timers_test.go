package e2e

import (
	"fmt"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// timersSource is the program testdata/programs/timers in C, with a thread for each timer.
const timersSource = `
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
static long total, per_us;
__attribute__((noinline)) uint64_t first(long n, uint64_t x) { while (n-- > 0) x = x * 2862933555777941757u + 3037000493u; return x; }
__attribute__((noinline)) uint64_t second(long n, uint64_t x) { while (n-- > 0) x = x * 3202034522624059733u + 4354685564u; return x; }
static long now(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec * 1000000000 + t.tv_nsec; }
static void *work(void *arg)
{
	long period = atol(arg), n = per_us * (period / 9), a = 0, b = 0;
	volatile uint64_t x = 1;
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	struct itimerspec it = {{0, period * 1000}, {0, period * 1000}};
	timerfd_settime(fd, 0, &it, 0);
	for (long i = 0; i < total * 1000 / period; i++) {
		uint64_t times;
		if (read(fd, &times, 8) != 8)
			exit(1);
		long t = now();
		x = first(n, x);
		long u = now();
		x = second(2 * n, x);
		long v = now();
		a += u - t;
		b += v - u;
	}
	printf("thread %d %ld %ld\n", gettid(), a, b);
	return 0;
}
int main(int argc, char **argv)
{
	long best = 1L << 60;
	for (int i = 0; i < 10; i++) {
		long t = now();
		volatile uint64_t x = first(200000, i);
		(void)x;
		t = now() - t;
		if (t < best)
			best = t;
	}
	per_us = 200000000 / best;
	total = atol(argv[1]);
	pthread_t threads[16];
	for (int i = 2; i < argc; i++)
		pthread_create(&threads[i], 0, work, argv[i]);
	for (int i = 2; i < argc; i++)
		pthread_join(threads[i], 0);
	return 0;
}
`

// Programs that wake by timers of whole milliseconds are sampled in all of what they do, and
// their weights are their CPU time.
func TestWorkByTimers(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.CompileC(t, timersSource, "-O2", "-g", "-pthread")
	haskell := testprog.Build(t, "timers", testprog.Options{})
	for _, event := range []string{"cpu-clock", "tick"} {
		for language, program := range map[string]string{"C": exe, "Haskell": haskell} {
			t.Run(event+"/"+language, func(t *testing.T) {
				flags := []string{"-e", event, "--max-overhead", "0"}
				if event == "cpu-clock" {
					flags = append(flags, "-F", "241")
				}
				log, r := record(t, flags, program, "1500", "1000", "4000", "5000", "10000")
				var info sampledTime
				view(t, &info, "info", log)
				e := info.Events[0]
				if e.Sampling.CPU <= 0 || e.Weight+1e9*e.Sampling.Un < 0.999e9*e.Sampling.CPU || e.Weight > 1.05e9*e.Sampling.CPU {
					t.Errorf("samples weigh %.0f ns, %+v", e.Weight, e.Sampling)
				}
				l := readLog(t, log)
				l.wantWhole(t)
				if inStep := e.Sampling.InStep; event == "tick" && inStep > 0 {
					text := run(t, command(t, ccview, "info", log))
					wantLine(t, text.stdout, "in step with the tick", "of the CPU time")
					t.Logf("in step with the tick for %.2f of %.2f s", inStep, e.Sampling.CPU)
					if inStep < e.Sampling.CPU { // until that was found, ticks were used
						return
					}
				}
				first, both := map[uint64]int{}, map[uint64]int{}
				for _, s := range l.samples {
					of := s.TSO
					if language == "C" {
						of = uint64(s.TID)
					}
					if frames := l.frames(s); len(frames) > 0 {
						switch l.source(frames[0]) {
						case "first":
							first[of]++
							both[of]++
						case "second":
							both[of]++
						}
					}
				}
				for line := range strings.Lines(r.stdout) {
					var of uint64
					var a, b float64
					if _, err := fmt.Sscanf(line, "thread %d %f %f", &of, &a, &b); err != nil {
						t.Fatalf("%q: %v", line, err)
					}
					wantShare(t, strings.TrimSpace(line), first[of], both[of], a/(a+b))
					t.Logf("%s: %.3f of %d samples, %.3f true", strings.TrimSpace(line), float64(first[of])/float64(both[of]), both[of], a/(a+b))
				}
			})
		}
	}
}
