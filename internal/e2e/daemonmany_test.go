package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ccagent/internal/testprog"
)

// The daemon samples allocation and sees collections in processes of two builds, in what they fork, and in
// those that come when others have gone. One that cannot be probed, or is not to be, says why, and the others
// go on.
func TestDaemonProbesManyProcesses(t *testing.T) {
	testprog.NeedRoot(t)
	old, fresh := readable(t, testprog.Build(t, "alloc31", testprog.Options{})), readable(t, testprog.Build(t, "alloc31", testprog.Options{Release: "9.10.3"}))
	bare := filepath.Join(sharedDir(t, 0o755), "alloc31")
	if r := run(t, command(t, testprog.NeedTool(t, "strip", "binutils"), "-o", bare, old)); r.status != 0 {
		t.Fatal(r.stderr)
	}
	h := newHost(t)
	h.more = "  process-overhead: 0\n" // no bound, as that of all
	h.configure("  - {executable: " + bare + ", profile: true}\n" +
		"  - {labels: {tier: 'back*'}, profile: true, without: [alloc]}\n" +
		"  - {executable: " + old + ", profile: true}\n  - {executable: " + fresh + ", profile: true}\n  - {executable: fork, profile: true}\n  - {profile: false}\n")
	gone := runOn(t, nil, old, forever)
	stripped := runOn(t, nil, bare, forever)
	h.start()
	both := []*exec.Cmd{runOn(t, nil, old, forever), runOn(t, nil, fresh, forever)}
	labelled := exec.Command(fresh, forever)
	labelled.Env = append(os.Environ(), "OTEL_RESOURCE_ATTRIBUTES=tier=backend")
	if err := labelled.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		labelled.Process.Kill()
		labelled.Wait()
	})

	has := func(pid int, events ...string) bool { return slices.Equal(h.ps(0)[pid].Events, events) }
	all := []string{"cpu-clock", "alloc", "gc"}
	probed := []int{gone.Process.Pid, both[0].Process.Pid, both[1].Process.Pid}
	for _, pid := range append(probed, forked(t)...) {
		eventually(t, fmt.Sprintf("process %d has all probes", pid), func() bool { return has(pid, all...) })
	}
	eventually(t, "a stripped process is sampled", func() bool { return has(stripped.Process.Pid, "cpu-clock") })
	eventually(t, "a labelled process is sampled", func() bool { return has(labelled.Process.Pid, "cpu-clock", "gc") })
	for pid, want := range map[int]string{stripped.Process.Pid: "no symbol table", labelled.Process.Pid: "a rule"} {
		for _, m := range h.ps(0)[pid].Missing {
			if !strings.Contains(m.Reason, want) {
				t.Errorf("process %d lacks %s since %q, want %q", pid, m.Event, m.Reason, want)
			}
		}
	}

	// Both go on when another process ends, and one that comes then has probes too.
	gone.Process.Kill()
	gone.Wait()
	late := runOn(t, nil, old, forever)
	eventually(t, "a late process has all probes", func() bool { return has(late.Process.Pid, all...) })
	for _, p := range append(both, late) {
		pid := p.Process.Pid
		var three float64
		eventually(t, fmt.Sprintf("process %d has enough samples of allocation", pid), func() (enough bool) {
			var n float64
			three, n = shareOfThree(t, h.closed(pid, 1<<10))
			return n >= 100
		})
		// Within 4 standard deviations of as many independent samples, or 0.58 to 0.92.
		if three < 0.6 || three > 0.9 {
			t.Errorf("process %d: Main.three allocates %.3f of what it and Main.one do, want 0.75", pid, three)
		}
	}
	h.daemon.Process.Signal(syscall.SIGTERM)
	if r := h.ended(); r.status != 0 {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
}

// shareOfThree is the share of Main.three in what alloc31 allocates by pieces of a log, and how many
// independent samples that rests on.
func shareOfThree(t *testing.T, pieces []string) (share, samples float64) {
	t.Helper()
	var three, both float64
	for _, p := range pieces {
		var hot struct {
			Total float64
			Rows  []struct {
				Element   string
				Share     float64
				Effective float64 `json:"effective_samples"`
			}
		}
		view(t, &hot, "hot", "--event", "alloc", p)
		for _, r := range hot.Rows {
			switch r.Element {
			case "Main.three":
				three += r.Share * hot.Total
				fallthrough
			case "Main.one":
				both, samples = both+r.Share*hot.Total, samples+r.Effective
			}
		}
	}
	return three / max(both, 1), samples
}

// forked starts a program that forks, and lists its processes: itself, one that it has forked and one that
// it has executed.
func forked(t *testing.T) (pids []int) {
	t.Helper()
	cmd := exec.Command(testprog.Build(t, "fork", testprog.Options{}), "2", "100000000000")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range pids {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		how, text, _ := strings.Cut(lines.Text(), " ")
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("the forking program says %q", lines.Text())
		}
		pids = append(pids, pid)
		if how == "started" {
			break
		}
	}
	return pids
}
