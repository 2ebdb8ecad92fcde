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

// allEvents are those of the default configuration.
var allEvents = []string{"cpu-clock", "alloc", "gc"}

// manyProcesses is a daemon whose probes have no bound, and programs by their paths, where every user may execute them.
func manyProcesses(t *testing.T, rules string, programs ...string) *host {
	t.Helper()
	h := newHost(t)
	h.more = "  process-overhead: 0\n" // no bound, as that of all
	for _, p := range programs {
		rules += "  - {executable: " + p + ", profile: true}\n"
	}
	h.configure(rules + "  - {profile: false}\n")
	h.start()
	return h
}

// await waits until events are measured of a process, and no others.
func (h *host) await(pid int, events ...string) {
	h.t.Helper()
	eventually(h.t, fmt.Sprintf("process %d has %v", pid, events), func() bool { return slices.Equal(h.ps(0)[pid].Events, events) })
}

// Processes of two builds have probes, and what they fork; those that are there go on when another one
// ends, and one that comes then has probes too.
func TestDaemonProbesManyProcesses(t *testing.T) {
	testprog.NeedRoot(t)
	old, fresh := testprog.Build(t, "alloc31", testprog.Options{}), testprog.Build(t, "alloc31", testprog.Options{Release: "9.10.3"})
	gone := runOn(t, nil, old, forever)
	h := manyProcesses(t, "", old, fresh, testprog.Build(t, "fork", testprog.Options{}))
	both := []*exec.Cmd{runOn(t, nil, old, forever), runOn(t, nil, fresh, forever)}
	for _, pid := range append([]int{gone.Process.Pid, both[0].Process.Pid, both[1].Process.Pid}, forked(t)...) {
		h.await(pid, allEvents...)
	}
	gone.Process.Kill()
	gone.Wait()
	h.await(runOn(t, nil, old, forever).Process.Pid, allEvents...)
	for _, p := range both {
		h.await(p.Process.Pid, allEvents...)
	}
}

// A process that cannot be probed, or is not to be, says why, and has what else there is.
func TestDaemonSaysWhatIsNotProbed(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "alloc31", testprog.Options{})
	bare := filepath.Join(sharedDir(t, 0o755), "alloc31")
	if r := run(t, command(t, testprog.NeedTool(t, "strip", "binutils"), "-o", bare, exe)); r.status != 0 {
		t.Fatal(r.stderr)
	}
	stripped := runOn(t, nil, bare, forever)
	labelled := exec.Command(exe, forever)
	labelled.Env = append(os.Environ(), "OTEL_RESOURCE_ATTRIBUTES=tier=backend")
	if err := labelled.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		labelled.Process.Kill()
		labelled.Wait()
	})
	h := manyProcesses(t, "  - {executable: "+bare+", profile: true}\n  - {labels: {tier: 'back*'}, profile: true, without: [alloc]}\n")
	h.await(stripped.Process.Pid, "cpu-clock")
	h.await(labelled.Process.Pid, "cpu-clock", "gc")
	for pid, want := range map[int]string{stripped.Process.Pid: "no symbol table", labelled.Process.Pid: "a rule"} {
		missing := h.ps(0)[pid].Missing
		if len(missing) == 0 {
			t.Errorf("process %d lacks nothing", pid)
		}
		for _, m := range missing {
			if !strings.Contains(m.Reason, want) {
				t.Errorf("process %d lacks %s since %q, want %q", pid, m.Event, m.Reason, want)
			}
		}
	}
}

// Allocation has the shares that the program was written to have.
func TestDaemonSharesAllocation(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "alloc31", testprog.Options{})
	h := manyProcesses(t, "", exe)
	pid := runOn(t, nil, exe, forever).Process.Pid
	h.await(pid, allEvents...)
	if p := h.ps(0)[pid].Partly; len(p) != 1 || p[0].Event != "alloc" || !strings.Contains(p[0].Reason, "large objects") {
		t.Errorf("ps says of what is sampled in part %v", p)
	}
	var three, n float64
	eventually(t, "there are enough samples of allocation", func() bool {
		log := filepath.Join(t.TempDir(), "snapshot.eventlog")
		r := run(t, command(t, ccagent, "snapshot", fmt.Sprint(pid), "--last", "1h", "-o", log, "--socket", h.socket))
		if r.status != 0 {
			return false // there is none yet
		}
		three, n = shareOfThree(t, log)
		return n >= 100
	})
	// Within 4 standard deviations of as many independent samples, or 0.58 to 0.92.
	if three < 0.58 || three > 0.92 {
		t.Errorf("Main.three allocates %.3f of what it and Main.one do by %.0f samples, want 0.75", three, n)
	}
	h.daemon.Process.Signal(syscall.SIGTERM)
	if r := h.ended(); r.status != 0 {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
}

// shareOfThree is the share of Main.three in what alloc31 allocates by a log, and how many
// independent samples that rests on.
func shareOfThree(t *testing.T, log string) (share, samples float64) {
	t.Helper()
	var hot struct {
		Total float64
		Rows  []struct {
			Element   string
			Share     float64
			Effective float64 `json:"effective_samples"`
		}
	}
	view(t, &hot, "hot", "--event", "alloc", log)
	var three, both float64
	for _, r := range hot.Rows {
		switch r.Element {
		case "Main.three":
			three += r.Share
			fallthrough
		case "Main.one":
			both, samples = both+r.Share, samples+r.Effective
		}
	}
	return three / max(both, 1e-9), samples
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
