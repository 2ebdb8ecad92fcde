package e2e

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ccagent/internal/testprog"
)

// phases is the test program of that name, which runs what it is asked to, and counts the CPU time of each.
type phases struct {
	*asked
	ns map[string]float64
}

func startPhases(t *testing.T) *phases {
	t.Helper()
	return &phases{startAsked(t, testprog.Build(t, "phases", testprog.Options{})), map[string]float64{}}
}

// run has a function run for so many millions of iterations, which take about a ms each.
func (p *phases) run(function string, millions int) {
	p.t.Helper()
	answer := p.ask(function, millions)
	_, text, _ := strings.Cut(answer, " ")
	ns, err := strconv.ParseFloat(text, 64)
	if err != nil {
		p.t.Fatalf("the program says %q", answer)
	}
	p.ns[function] += ns
}

// checkShares compares CPU times by the daemon's logs with those that the program has counted, and gives how many
// samples each function has by second of its CPU time.
func (p *phases) checkShares(t *testing.T, h *host) (rate map[string]float64) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "snapshot.eventlog")
	if r := run(t, command(t, ccagent, "snapshot", strconv.Itoa(p.pid), "--last", "1h", "-o", log, "--socket", h.socket)); r.status != 0 {
		t.Fatalf("snapshot: %s", r.stderr)
	}
	var hot struct {
		Total float64
		Rows  []struct {
			Element        string
			Share, Samples float64
		}
	}
	view(t, &hot, "hot", log)
	rate = map[string]float64{}
	for _, r := range hot.Rows {
		name, ok := strings.CutPrefix(r.Element, "Main.")
		if want := p.ns[name]; ok && want > 0 {
			rate[name] = r.Samples / want * 1e9
			t.Logf("%s: %.0f ms of %.0f, %.0f samples", name, r.Share*hot.Total/1e6, want/1e6, r.Samples)
			// Only what a thread did before the daemon saw it, and the windows at the edges, can be attributed wrongly.
			if got := r.Share * hot.Total; math.Abs(got-want) > 0.08*want {
				t.Errorf("%s has %.0f ms, and by its own count %.0f", name, got/1e6, want/1e6)
			}
		}
	}
	if want := p.ns["first"] + p.ns["second"]; math.Abs(hot.Total-want) > 0.03*want {
		t.Errorf("all has %.0f ms, and by the program's count %.0f", hot.Total/1e6, want/1e6)
	}
	return rate
}

// A boost takes many more samples of a process, and of no other. Across its beginning and its end shares and times
// are those that the program itself has counted. It survives that the configuration is read again, and ends
// by itself.
func TestDaemonBoost(t *testing.T) {
	testprog.NeedRoot(t)
	other := runOn(t, nil, testprog.Build(t, "spin31", testprog.Options{}), forever)
	p := startPhases(t)
	h := newHost(t)
	rules := "  - {executable: phases, profile: true}\n  - {executable: spin31, profile: true}\n  - {profile: false}\n"
	h.more = "  boost-overhead: 0\n"
	h.configure(rules)
	h.start()
	boost := func(args ...string) result {
		return run(t, command(t, ccagent, append([]string{"boost", "--socket", h.socket}, args...)...))
	}
	pid := strconv.Itoa(p.pid)
	eventually(t, "the program is sampled", func() bool { return h.ps(0)[p.pid].State == "sampled" })
	for what, args := range map[string][]string{
		"in step with milliseconds": {pid, "--rate", "1000"}, "1s to 1h": {pid, "--for", "2h"},
		"is not sampled": {"1"}, "no process id": {"api"},
	} {
		if r := boost(args...); r.status == 0 || !strings.Contains(r.stderr, what) {
			t.Errorf("boost %v: status %d, %s, want %q", args, r.status, r.stderr, what)
		}
	}
	theirs := command(t, ccagent, "boost", pid, "--socket", h.socket)
	theirs.SysProcAttr, theirs.Dir = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID}}, "/"
	if r := run(t, theirs); r.status == 0 || !strings.Contains(r.stderr, "is not sampled") {
		t.Errorf("a user boosts another's process: status %d, %s", r.status, r.stderr)
	}

	p.run("first", 700)
	if r := boost(pid, "--rate", "2003", "--for", "1h"); r.status != 0 {
		t.Fatalf("boost: %s", r.stderr)
	}
	p.run("second", 300)
	h.configure("  - {executable: phases, profile: true, overhead: 2}\n  - {executable: spin31, profile: true}\n  - {profile: false}\n")
	if r := run(t, command(t, ccagent, "reload", "--socket", h.socket)); r.status != 0 {
		t.Fatalf("reload: %s", r.stderr)
	}
	if b := h.ps(0)[p.pid].Boost; b == nil || b.Rate != 2003 || b.UID != 0 || !(b.Left > 0 && b.Left < 3600) {
		t.Errorf("after the configuration was read again the boost is %+v", b)
	}
	p.run("second", 200)
	if b := h.ps(0)[other.Process.Pid].Boost; b != nil {
		t.Errorf("another process is boosted: %+v", b)
	}
	if r := boost(pid, "--rate", "2003", "--for", "1s"); r.status != 0 {
		t.Fatalf("boost again: %s", r.stderr)
	}
	eventually(t, "the boost ends", func() bool { return h.ps(0)[p.pid].Boost == nil })
	p.run("first", 700)

	rate := p.checkShares(t, h)
	if rate["second"] < 4*rate["first"] {
		t.Errorf("samples a second are %v: the boosted function should have many more", rate)
	}
	h.daemon.Process.Signal(syscall.SIGTERM)
	r := h.ended()
	if r.status != 0 || !strings.Contains(r.stderr, "a boost of process "+pid+", 2003 Hz for 3600 s") {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
}
