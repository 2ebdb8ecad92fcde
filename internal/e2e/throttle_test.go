package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"

	"golang.org/x/sys/unix"
)

// If the kernel throttles an event, the log counts the missing samples, and the kernel's
// setting is named.
func TestThrottled(t *testing.T) {
	testprog.NeedRoot(t)
	const setting = "/proc/sys/kernel/perf_event_max_sample_rate"
	before, err := os.ReadFile(setting)
	if err != nil {
		t.Fatal(err)
	}
	// The limit is high enough for other tests, which sample meanwhile, and for other profilers.
	const roomy, limit = "20000", "5900"
	limitTo := func(value string) error { return os.WriteFile(setting, []byte(value), 0) }
	if err := limitTo(roomy); errors.Is(err, unix.EROFS) || errors.Is(err, unix.EINVAL) {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "the right to limit the rate of samples, and a perf_cpu_time_max_percent above 0: " + err.Error()})
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := limitTo(strings.TrimSpace(string(before))); err != nil {
			t.Error(err)
		}
	})
	target := command(t, testprog.Build(t, "spin31", testprog.Options{}), endless)
	begin(t, target)

	log := filepath.Join(t.TempDir(), "run.eventlog")
	agent := command(t, ccagent, "attach", "-o", log, "-e", "cpu-clock", "-F", "9973", "--max-overhead", "0", pidOf(target))
	wait := background(t, agent)
	logs := func(is func(eventlog.Event) bool) func() bool { return func() bool { return has(log, is) } }
	eventually(t, "the log has the overhead of a second", logs(func(e eventlog.Event) bool {
		_, is := e.(*eventlog.Overhead)
		return is
	}))
	if err := limitTo(limit); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log has a loss by throttling", logs(func(e eventlog.Event) bool {
		l, is := e.(*eventlog.Loss)
		return is && l.Reason == eventlog.LossThrottled && l.Count > 0
	}))
	if err := agent.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	r := wait()
	wantLine(t, r.stderr, "perf_cpu_time_max_percent", "perf_event_max_sample_rate", limit)
	var info struct {
		Events   []struct{ Samples, Throttled uint64 }
		Warnings []string
	}
	view(t, &info, "info", log)
	t.Logf("%d samples, %d throttled", info.Events[0].Samples, info.Events[0].Throttled)
	if info.Events[0].Throttled == 0 || len(info.Warnings) == 0 {
		t.Errorf("info does not report the throttling: %+v", info)
	}
}
