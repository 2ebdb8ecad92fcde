package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/agent/daemon/control"
	"ccagent/internal/testprog"
)

// The daemon sends each piece that it closes to the real collector: those from while it was down, and
// from before the daemon was started anew, too. What arrives is what the pieces have.
func TestDaemonSends(t *testing.T) {
	testprog.NeedRoot(t)
	needEngines(t)
	exe := readable(t, testprog.Build(t, "spin31", testprog.Options{})) // others may run the program too
	p := runOn(t, nil, exe, forever)
	h := newHost(t)
	collector, nobody := freeAddress(t), freeAddress(t)
	h.more = "  push:\n  - {engine: otlp, url: 'http://" + collector + "'}\n  - {engine: pyroscope, url: 'http://" + nobody + "'}\n"
	h.configure("  - {executable: " + exe + ", profile: true}\n  - {profile: false}\n")
	h.start()
	engines := func() map[string]control.Engine {
		t.Helper()
		r := run(t, command(t, ccagent, "status", "--socket", h.socket, "--format", "json"))
		var s control.Status
		if err := json.Unmarshal([]byte(r.stdout), &s); err != nil {
			t.Fatalf("ccagent status: %v\n%s", err, r.stderr)
		}
		all := map[string]control.Engine{}
		for _, e := range s.Engines {
			all[e.Name] = e
		}
		return all
	}
	eventually(t, "pieces wait for an engine that is down", func() bool {
		e := engines()["otlp-0"]
		return e.Waiting > 1 && e.Failing != ""
	})
	h.daemon.Process.Signal(unix.SIGTERM)
	if r := h.ended(); r.status != 0 {
		t.Fatalf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
	h.start()
	eventually(t, "pieces still wait", func() bool { return engines()["otlp-0"].Waiting > 2 })

	dir := engineAt(t, "otelcol", collector)
	eventually(t, "pieces are sent", func() bool { return engines()["otlp-0"].Sent > 3 })
	p.Process.Kill()
	p.Wait()
	eventually(t, "the process is gone", func() bool { return h.ps(0)[p.Process.Pid].PID == 0 })
	eventually(t, "all is sent", func() bool {
		e := engines()["otlp-0"]
		return e.Waiting == 0 && int(e.Sent) >= len(h.pieces(p.Process.Pid))
	})
	all := engines()
	if e := all["otlp-0"]; len(e.Dropped) != 0 || e.Rejected != 0 || e.Failing != "" {
		t.Errorf("the collector: %+v", e)
	}
	if e := all["pyroscope-1"]; e.Sent != 0 || e.Waiting == 0 || e.Failing == "" {
		t.Errorf("the engine that is down: %+v", e)
	}

	var written uint64
	var per []any
	for _, path := range h.pieces(p.Process.Pid) {
		r := run(t, command(t, ccview, "info", path, "--format", "json"))
		var info totals
		if err := json.Unmarshal([]byte(r.stdout), &info); err != nil {
			t.Fatal(err)
		}
		for _, e := range info.Events {
			written += e.Weight
		}
		per = append(per, info.Events)
	}
	var received, three float64
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range ofOTLP(t, raw) {
			received += r.total
			per = append(per, r.total)
			three += r.inclusive["Main.three"]
		}
	}
	if diff := received - float64(written); diff > 1e-6*float64(written) || diff < -1e-6*float64(written) || three == 0 {
		t.Errorf("the collector has %v ns in %d requests, %v of them in Main.three; %d pieces have %d\n%+v", received, len(names), three, len(h.pieces(p.Process.Pid)), written, per)
	}
	h.daemon.Process.Signal(unix.SIGTERM)
	if r := h.ended(); r.status != 0 {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
}
