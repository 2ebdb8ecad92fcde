package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ccagent/agent/invoker"
	"ccagent/internal/elftest"
	"ccagent/internal/testprog"
)

// A stripped program is named by what a debuginfod server has of it, if the server is named by flag,
// and then without the server.
func TestDebuginfod(t *testing.T) {
	testprog.NeedRoot(t)
	objcopy, daemon := testprog.NeedTool(t, "objcopy", "binutils"), testprog.NeedTool(t, "debuginfod", "debuginfod")
	whole, dir, served := testprog.Build(t, "spin31", testprog.Options{}), t.TempDir(), t.TempDir()
	exe := filepath.Join(dir, "spin31")
	for _, argv := range [][]string{{"--strip-all", whole, exe}, {"--only-keep-debug", whole, filepath.Join(served, "spin31.debug")}} {
		if out, err := exec.Command(objcopy, argv...).CombinedOutput(); err != nil {
			t.Fatalf("objcopy %q: %v\n%s", argv, err, out)
		}
	}
	id := fmt.Sprintf("%x", elftest.Open(t, whole).BuildID())
	forget := func() { os.Remove(filepath.Join(invoker.DebugCache(0), id+".debug")) }
	forget()
	t.Cleanup(forget)
	share := func(log string) float64 {
		for _, row := range hotOf(t, log).Rows {
			if row.Element == "Main.three" {
				return row.Share
			}
		}
		return 0
	}

	unasked := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a server was asked for %s without a flag", r.URL)
	}))
	defer unasked.Close()
	t.Setenv("DEBUGINFOD_URLS", unasked.URL)
	log, _ := record(t, []string{"-e", "cpu-clock", "-F", "997"}, exe, "2000")
	if s := share(log); s != 0 {
		t.Errorf("without a server Main.three has %.2f", s)
	}

	t.Setenv("DEBUGINFOD_URLS", "") // debuginfod itself asks the servers named there
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	server := command(t, daemon, "-F", "-p", fmt.Sprint(port), "-d", filepath.Join(dir, "index.sqlite"), "-t", "1", served)
	background(t, server)
	eventually(t, "debuginfod has the debug file", func() bool {
		reply, err := http.Get(url + "/buildid/" + id + "/debuginfo")
		if err == nil {
			reply.Body.Close()
		}
		return err == nil && reply.StatusCode == http.StatusOK
	})
	symbolize := func() result {
		t.Helper()
		return run(t, command(t, ccagent, "symbolize", "--debuginfod", url, log))
	}
	if r := symbolize(); r.status != 0 || share(log) < 0.5 {
		t.Errorf("with debuginfod Main.three has %.2f\n%s", share(log), r.stderr)
	}
	server.Process.Kill()
	log, _ = record(t, []string{"-e", "cpu-clock", "-F", "997", "--debuginfod", url}, exe, "2000")
	if s := share(log); s < 0.5 {
		t.Errorf("from the cache Main.three has %.2f", s)
	}
	forget()
	wantLine(t, symbolize().stderr, "debuginfod", "connection refused")
	if r := run(t, command(t, ccagent, "record", "--debuginfod", "ftp://x", "--", "true")); r.status != 125 {
		t.Errorf("status %d\n%s", r.status, r.stderr)
	}
}
