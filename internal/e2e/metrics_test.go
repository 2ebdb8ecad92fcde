package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ccagent/internal/testprog"
)

// sums adds up a metric's values over its labels.
func sums(text, metric string) (sum float64) {
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if base, _, _ := strings.Cut(name, "{"); ok && base == metric {
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				sum += n
			}
		}
	}
	return sum
}

// cpuSeconds is the CPU time of a process by the kernel's count, s.
func cpuSeconds(t *testing.T, pid int) float64 {
	t.Helper()
	used, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(used[strings.LastIndexByte(string(used), ')'):]))
	user, err1 := strconv.ParseFloat(fields[12], 64)
	system, err2 := strconv.ParseFloat(fields[13], 64)
	if err1 != nil || err2 != nil {
		t.Fatalf("the CPU time of process %d: %q", pid, fields)
	}
	const hz = 100
	return (user + system) / hz
}

// What ps says that sampling costs each process adds up to what the kernel measures of all programs that sample,
// and one that is not sampled has no figure.
func TestDaemonSaysWhatProcessesCost(t *testing.T) {
	testprog.NeedRoot(t)
	alloc, spin := testprog.Build(t, "alloc31", testprog.Options{}), testprog.Build(t, "spin31", testprog.Options{})
	h := newHost(t)
	at := freeAddress(t)
	h.more = "  metrics: " + at + "\n"
	h.configure("  - {executable: " + alloc + ", profile: true}\n  - {executable: " + spin + ", labels: {tier: none}, profile: false}\n" +
		"  - {executable: " + spin + ", profile: true}\n  - {profile: false}\n")
	h.start()
	sampled := []int{runOn(t, nil, alloc, forever).Process.Pid, runOn(t, nil, spin, forever).Process.Pid}
	excluded := command(t, spin, forever)
	excluded.Env = append(os.Environ(), "OTEL_RESOURCE_ATTRIBUTES=tier=none")
	background(t, excluded)
	eventually(t, "what processes cost adds up", func() bool {
		var cost float64
		all := h.ps(0)
		for _, pid := range sampled {
			p := all[pid]
			if p.Cost == nil || *p.Cost <= 0 || *p.Cost > 0.5 || p.Samples < 300 {
				return false
			}
			cost += *p.Cost * cpuSeconds(t, pid)
		}
		if p := all[excluded.Process.Pid]; p.State != "excluded" || p.Cost != nil {
			t.Fatalf("the process that is not sampled: %+v", p)
		}
		text := get(t, "http://"+at+"/metrics")
		kernel := sums(text, "ccagent_bpf_seconds_total") + sums(text, "ccagent_interrupt_seconds_total") + sums(text, "ccagent_probe_seconds_total")
		t.Logf("processes %.4f s, the kernel %.4f s", cost, kernel)
		return cost > 0.7*kernel && cost < 1.4*kernel // metrics are older by up to a second
	})
}

// Debian's Prometheus scrapes the daemon's metrics, promtool finds nothing wrong with them, and each that
// the dashboard draws is there.
func TestDaemonMetrics(t *testing.T) {
	testprog.NeedRoot(t)
	for _, tool := range []string{"prometheus", "promtool"} {
		testprog.NeedTool(t, tool, "prometheus")
	}
	exe := readable(t, testprog.Build(t, "alloc31", testprog.Options{})) // others may run the program too
	const nursery = 64 << 20
	p := runOn(t, nil, exe, forever, "+RTS", "-A64m")
	h := newHost(t)
	at := freeAddress(t)
	h.more = "  metrics: " + at + "\n  events: [cpu-clock, gc, threads]\n  process-overhead: 0\n" // its thread is seen at once
	h.configure("  - {executable: " + exe + ", profile: true}\n  - {profile: false}\n")
	h.start()

	var text string
	moving := []string{"ccagent_samples_total", "ccagent_haskell_collections_total", "ccagent_haskell_allocated_bytes_total",
		"ccagent_haskell_cpu_seconds_total", "ccagent_haskell_gc_pause_seconds_count", "ccagent_haskell_threads", "ccagent_haskell_os_threads", "ccagent_haskell_heap_bytes", "ccagent_pieces", "ccagent_profiled_cpu_seconds_total"}
	eventually(t, "all metrics move", func() bool {
		text = get(t, "http://"+at+"/metrics")
		for _, name := range moving {
			if sums(text, name) <= 0 {
				return false
			}
		}
		return true
	})
	// From collection to collection the program fills its nursery.
	if each := sums(text, "ccagent_haskell_allocated_bytes_total") / sums(text, "ccagent_haskell_collections_total"); each < 0.9*nursery || each > 1.1*nursery {
		t.Errorf("%.0f bytes were allocated for each collection, of a nursery of %d", each, nursery)
	}
	if n := sums(text, "ccagent_haskell_processes"); n != 1 {
		t.Errorf("there are %v processes", n)
	}
	if cpu, most := sums(text, "ccagent_haskell_cpu_seconds_total"), cpuSeconds(t, p.Process.Pid)+0.05; cpu > most {
		t.Errorf("the categories have %v s of CPU time, the process has used %v", cpu, most)
	}
	check := command(t, "promtool", "check", "metrics")
	check.Stdin = strings.NewReader(text)
	if r := run(t, check); r.status != 0 {
		t.Errorf("promtool: status %d\n%s%s", r.status, r.stdout, r.stderr)
	}

	dashboard, err := os.ReadFile("../../deploy/grafana/haskell-services.json")
	if err != nil {
		t.Fatal(err)
	}
	var drawn struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(dashboard, &drawn); err != nil || len(drawn.Panels) == 0 {
		t.Fatalf("the dashboard: %v", err)
	}
	for _, panel := range drawn.Panels {
		for _, target := range panel.Targets {
			for _, name := range regexp.MustCompile(`\b(ccagent|process)_[a-z_]+`).FindAllString(target.Expr, -1) {
				name = strings.TrimSuffix(name, "_bucket")
				if !strings.Contains(text, "# TYPE "+name+" ") {
					t.Errorf("the dashboard draws %s, which there is not", name)
				}
			}
		}
	}

	dir, web := t.TempDir(), freeAddress(t)
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "scrape_configs:\n- {job_name: ccagent, scrape_interval: 1s, static_configs: [{targets: ['%s']}]}\n", at), 0o600); err != nil {
		t.Fatal(err)
	}
	server := command(t, "prometheus", "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", web)
	background(t, server)
	eventually(t, "Prometheus has the rate of allocation", func() bool {
		answer, err := http.Get("http://" + web + "/api/v1/query?query=" + url.QueryEscape(`rate(ccagent_haskell_allocated_bytes_total{service="alloc31"}[1m])`))
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		var found struct {
			Data struct{ Result []struct{ Value [2]any } }
		}
		if json.NewDecoder(answer.Body).Decode(&found) != nil || len(found.Data.Result) != 1 {
			return false
		}
		rate, err := strconv.ParseFloat(fmt.Sprint(found.Data.Result[0].Value[1]), 64)
		return err == nil && rate > 0
	})
	h.daemon.Process.Signal(syscall.SIGTERM)
	if r := h.ended(); r.status != 0 {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
}

// freeAddress is an address of this host at which nobody listens. It is one that other programs do not use, so that its port stays free.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.N(250), 1+rand.N(250), 1+rand.N(250)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func get(t *testing.T, address string) string {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
