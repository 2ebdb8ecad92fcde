package e2e

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// spinSource is a program that computes for half a second of CPU time and has the kernel work for
// another, and prints what it has used of both.
const spinSource = `
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
static char buffer[1 << 20];
static volatile unsigned long x = 1;
__attribute__((noinline)) static void spin(void) { for (int i = 0; i < 100000; i++) x = x * 2862933555777941757u + 3037000493u; }
static double used(double *kernel)
{
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	*kernel = r.ru_stime.tv_sec + r.ru_stime.tv_usec / 1e6;
	return *kernel + r.ru_utime.tv_sec + r.ru_utime.tv_usec / 1e6;
}
int main(void)
{
	double kernel, all;
	while (used(&kernel) < 0.5)
		spin();
	for (int zero = open("/dev/zero", O_RDONLY); (all = used(&kernel)) < 1;)
		if (read(zero, buffer, sizeof buffer) != sizeof buffer)
			return 1;
	printf("%f\n", all);
	return 0;
}
`

// The samples of the kernel's tick weigh what the kernel says that a program has used, and say
// what was in user space and what in the kernel.
func TestTick(t *testing.T) {
	testprog.NeedRoot(t)
	cc := testprog.NeedTool(t, "gcc", "gcc")
	dir := t.TempDir()
	source, exe := filepath.Join(dir, "spin.c"), filepath.Join(dir, "spin")
	if err := os.WriteFile(source, []byte(spinSource), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-O2", "-g", "-o", exe, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	log, r := record(t, []string{"-e", "tick", "-F", "100"}, exe)
	wantLine(t, r.stderr, "tick is sampled at", "the kernel's", "-F")
	var used float64
	if _, err := fmt.Sscan(r.stdout, &used); err != nil {
		t.Fatalf("%q: %v", r.stdout, err)
	}
	var info sampledTime
	view(t, &info, "info", log)
	e := info.Events[0]
	t.Logf("%+v, %.3f s by the kernel", e, used)
	if e.Sampling.Method != "tick" || e.Sampling.Tick.Hz < 50 {
		t.Errorf("%+v", e.Sampling)
	}
	// What exec and exit take is in one of both alone.
	if got := e.Weight/1e9 + e.Sampling.Un; math.Abs(got-used) > 0.1*used || math.Abs(e.Sampling.CPU-used) > 0.1*used {
		t.Errorf("samples weigh %.3f s of %.3f s, of %.3f s", got, e.Sampling.CPU, used)
	}
	l := readLog(t, log)
	l.wantWhole(t)
	var spins, kernel int
	for _, s := range l.samples {
		frames := l.frames(s)
		switch {
		case s.Flags&eventlog.SampleInKernel != 0:
			kernel++
		case len(frames) > 0 && l.source(frames[0]) == "spin":
			spins++
		}
	}
	t.Logf("of %d samples, %d spin and %d are in the kernel", len(l.samples), spins, kernel)
	// Half of the time is each's, but where programs compete for a CPU, a program that only
	// computes has fewer ticks than its time (docs/events.md).
	if least := len(l.samples) / 20; spins <= least || kernel <= least {
		t.Errorf("of %d samples, %d spin and %d are in the kernel", len(l.samples), spins, kernel)
	}
	wantShareAbove(t, "in one of both", spins+kernel, len(l.samples), 0.8)
}

// sampledTime is what info says of how CPU time was sampled.
type sampledTime struct {
	Events []struct {
		Weight   float64
		Sampling struct {
			Method string
			CPU    float64 `json:"cpu_seconds"`
			Un     float64 `json:"unsampled_seconds"`
			InStep float64 `json:"in_step_seconds"`
			Tick   struct{ Hz float64 }
		}
	}
}
