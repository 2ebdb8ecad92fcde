package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"

	"ccagent/internal/testprog"
)

// The pieces of one user's programs that are closed together are sent in one request, those of another user's in another. No piece
// comes twice.
func TestDaemonSendsPiecesTogether(t *testing.T) {
	testprog.NeedRoot(t)
	exe := readable(t, testprog.Build(t, "spin31", testprog.Options{}))
	users := map[int64]bool{} // by process: whether it is nobody's
	for n := range 5 {
		attr := &syscall.SysProcAttr{}
		if n > 2 {
			attr.Credential = &syscall.Credential{Uid: nobodyID, Gid: nobodyID}
		}
		users[int64(runOn(t, attr, exe, forever).Process.Pid)] = n > 2
	}
	var mu sync.Mutex
	var pieces [][]int64 // of each request, by their processes
	seen := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var data otlp.ProfilesData
		if err := proto.Unmarshal(gunzipped(t, body), &data); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		var of []int64
		for _, resource := range data.ResourceProfiles {
			for _, a := range resource.Resource.Attributes {
				if a.Key == "process.pid" {
					of = append(of, a.Value.GetIntValue())
				}
			}
			p := resource.ScopeProfiles[0].Profiles[0]
			if key := strconv.FormatUint(p.TimeUnixNano, 10) + " " + strconv.FormatInt(of[len(of)-1], 10); seen[key] {
				t.Errorf("%s was sent twice", key)
			} else {
				seen[key] = true
			}
		}
		pieces = append(pieces, of)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer server.Close()
	h := newHost(t)
	h.more = "  push:\n  - {engine: otlp, url: '" + server.URL + "'}\n"
	h.configure("  - {executable: " + exe + ", profile: true}\n  - {profile: false}\n")
	h.start()
	eventually(t, "pieces of all programs of each user are sent together", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(pieces, func(of []int64) bool { return len(of) == 3 && !users[of[0]] }) &&
			slices.ContainsFunc(pieces, func(of []int64) bool { return len(of) == 2 && users[of[0]] })
	})
	h.daemon.Process.Signal(syscall.SIGTERM)
	if r := h.ended(); r.status != 0 {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
	sent := 0
	for _, of := range pieces {
		sent += len(of)
		for _, pid := range of {
			if users[pid] != users[of[0]] {
				t.Errorf("a request has processes %v, of several users", of)
			}
		}
	}
	waiting, err := os.ReadFile(filepath.Join(h.state, "push-0-otlp.json"))
	if all, _ := filepath.Glob(filepath.Join(h.state, "*", "*.eventlog")); err != nil || sent > len(all) {
		t.Errorf("%d pieces were sent in %d requests, of %d; %s wait: %v", sent, len(pieces), len(all), waiting, err)
	}
}
