package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"ccagent/agent/daemon/control"
	"ccagent/internal/testprog"
)

// badEngine is an engine that gives one answer after the other to a log, and takes what follows.
type badEngine struct {
	t       *testing.T
	answers []func(w http.ResponseWriter, r *http.Request)

	mu       sync.Mutex
	requests int
	taken    map[string]float64 // weights of what it took, ns, by request: one may come twice if it is late
	refused  float64
}

func (e *badEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer of profiles" || r.URL.Path != "/v1development/profiles" {
		e.t.Errorf("a request for %s with headers %v", r.URL.Path, r.Header)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // a client that has given up
	}
	var weight float64
	for _, p := range ofOTLP(e.t, gunzipped(e.t, body)) {
		weight += p.total
	}
	e.mu.Lock()
	n := e.requests
	e.requests++
	e.mu.Unlock()
	if n < len(e.answers) {
		e.answers[n](w, r)
		if n == len(e.answers)-1 {
			e.mu.Lock()
			e.refused = weight
			e.mu.Unlock()
		}
		return
	}
	e.mu.Lock()
	if e.taken == nil {
		e.taken = map[string]float64{}
	}
	e.taken[string(body)] = weight
	e.mu.Unlock()
	text, err := proto.Marshal(&otlp.ProfilesData{}) // an empty answer: nothing was rejected
	if err != nil {
		e.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.Write(text)
}

// sendsWithoutPrivileges checks, while a daemon sends, that a confined child of it does, and that it has no socket of TCP
// itself.
func sendsWithoutPrivileges(t *testing.T, daemon int) {
	tcp := map[string]bool{} // inodes
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile("/proc/net/" + table)
		if err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 9 {
				tcp["socket:["+f[9]+"]"] = true
			}
		}
	}
	has := func(pid string) (n int) {
		fds, _ := filepath.Glob("/proc/" + pid + "/fd/*")
		for _, fd := range fds {
			if to, err := os.Readlink(fd); err == nil && tcp[to] {
				n++
			}
		}
		return n
	}
	if n := has(strconv.Itoa(daemon)); n != 0 {
		t.Errorf("the daemon has %d sockets of TCP itself", n)
	}
	senders := 0
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		text, err := os.ReadFile(dir + "/status")
		cmdline, _ := os.ReadFile(dir + "/cmdline")
		if err != nil || strings.Trim(string(cmdline), "\x00") != "ccagent-send" {
			continue
		}
		status := map[string]string{}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			status[name] = strings.Join(strings.Fields(value), " ")
		}
		if status["PPid"] != strconv.Itoa(daemon) || has(filepath.Base(dir)) == 0 {
			continue
		}
		senders++
		for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
			if strings.Trim(status[set], "0") != "" {
				t.Errorf("what sends has the capabilities %s %s", set, status[set])
			}
		}
		if strings.HasPrefix(status["Uid"], "0 ") || status["NoNewPrivs"] != "1" || status["Seccomp"] != "2" {
			t.Errorf("what sends has the users %s, no_new_privs %s, a filter of mode %s", status["Uid"], status["NoNewPrivs"], status["Seccomp"])
		}
	}
	if senders != 1 {
		t.Errorf("%d children of the daemon are connected", senders)
	}
}

// An engine that is reached by TLS, with an authority of its own and headers, all from the environment, may
// be overloaded, garbled, slow, and broken; what it does not refuse for good it gets in the end. What it
// refuses is counted.
func TestDaemonSendsToABadEngine(t *testing.T) {
	testprog.NeedRoot(t)
	say := func(status int, contentType, text string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			io.WriteString(w, text)
		}
	}
	h := newHost(t)
	e := &badEngine{t: t, answers: []func(http.ResponseWriter, *http.Request){
		func(w http.ResponseWriter, r *http.Request) {
			sendsWithoutPrivileges(t, h.daemon.Process.Pid)
			say(503, "text/plain", "overloaded")(w, r)
		},
		say(200, "text/html", "<h1>It works!</h1>"),
		func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		say(400, "text/plain", "I do not like this one"),
	}}
	server := httptest.NewTLSServer(e)
	defer server.Close()
	authority := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(authority, text, 0o600); err != nil {
		t.Fatal(err)
	}
	exe := readable(t, testprog.Build(t, "spin31", testprog.Options{}))
	p := runOn(t, nil, exe, forever)
	h.more = "  push:\n  - {engine: otlp}\n"
	h.configure("  - {executable: " + exe + ", profile: true}\n  - {profile: false}\n")
	h.env = []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL, "OTEL_EXPORTER_OTLP_CERTIFICATE=" + authority,
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20of%20profiles", "OTEL_EXPORTER_OTLP_TIMEOUT=1000",
	}
	h.start()
	engine := func() (e control.Engine) {
		t.Helper()
		r := run(t, command(t, ccagent, "status", "--socket", h.socket, "--format", "json"))
		var s control.Status
		if err := json.Unmarshal([]byte(r.stdout), &s); err != nil || len(s.Engines) != 1 {
			t.Fatalf("ccagent status: %v\n%s", err, r.stderr)
		}
		return s.Engines[0]
	}
	eventually(t, "the engine takes pieces", func() bool { return engine().Sent > 1 })
	p.Process.Kill()
	p.Wait()
	eventually(t, "the process is gone", func() bool { return h.ps(0)[p.Process.Pid].PID == 0 })
	eventually(t, "nothing waits", func() bool { return engine().Waiting == 0 && int(engine().Sent)+1 >= len(h.pieces(p.Process.Pid)) })
	if s := engine(); fmt.Sprint(s.Dropped) != "map[refused:1]" || s.Rejected != 0 || s.Failing != "" {
		t.Errorf("the status is %+v", s)
	}
	h.daemon.Process.Signal(unix.SIGTERM)
	if r := h.ended(); r.status != 0 {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
	var written float64
	for _, path := range h.pieces(p.Process.Pid) {
		r := run(t, command(t, ccview, "info", path, "--format", "json"))
		var info totals
		if err := json.Unmarshal([]byte(r.stdout), &info); err != nil {
			t.Fatal(err)
		}
		for _, e := range info.Events {
			written += float64(e.Weight)
		}
	}
	got := e.refused
	for _, weight := range e.taken {
		got += weight
	}
	if e.refused == 0 || got < written*(1-1e-6) || got > written*(1+1e-6) {
		t.Errorf("the engine took and refused %v ns, the latter %v, of %v", got, e.refused, written)
	}
}
