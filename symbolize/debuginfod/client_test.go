package debuginfod

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/credentials"
	"ccagent/internal/elftest"
	"ccagent/internal/testprog"
	"ccagent/symbolize/binary"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

// stripped is a program without debug information, with its debug file.
func stripped(t *testing.T, text string) (b binary.Info, debug string) {
	t.Helper()
	objcopy := testprog.NeedTool(t, "objcopy", "binutils")
	whole := testprog.CompileC(t, text, "-g", "-Wl,--build-id")
	exe, debug := filepath.Join(t.TempDir(), "exe"), filepath.Join(t.TempDir(), "debug")
	for _, argv := range [][]string{{"--only-keep-debug", whole, debug}, {"--strip-all", whole, exe}} {
		if out, err := exec.Command(objcopy, argv...).CombinedOutput(); err != nil {
			t.Fatalf("objcopy %q: %v\n%s", argv, err, out)
		}
	}
	return binary.IdentifyFile(elftest.Open(t, exe)), debug
}

// A file is fetched once, taken only if it is of the build that was asked for, and never more of it
// than the limit, whatever the server sends.
func TestFile(t *testing.T) {
	b, debug := stripped(t, "int main(void) { return 0; }")
	_, other := stripped(t, "int main(void) { return 1; }")
	var asked int
	var handle http.HandlerFunc
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if want := "/buildid/" + hex.EncodeToString(b.BuildID) + "/debuginfo"; r.URL.Path != want {
			t.Errorf("asked for %s, not %s", r.URL.Path, want)
		}
		handle(w, r)
	}))
	defer server.Close()
	client := func() *Client {
		owner := credentials.Credentials{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
		return New([]string{server.URL}, filepath.Join(t.TempDir(), "cache"), owner)
	}
	sends := func(path string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) }
	}

	handle = sends(debug)
	c := client()
	for range 2 {
		f := c.File(t.Context(), &b)
		if f == nil {
			t.Fatal(c.Problems())
		}
		got, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
		f.Close()
		if want, _ := os.ReadFile(debug); err != nil || string(got) != string(want) {
			t.Errorf("%d bytes came of %d: %v", len(got), len(want), err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}

	for _, bad := range []struct {
		name   string
		handle http.HandlerFunc
		limit  uint64
		want   string
	}{
		{"another build", sends(other), 0, "not of this build"},
		{"no ELF", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, 0, "not of this build"},
		{"no such file", http.NotFound, 0, "no server has"},
		{"a failing server", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, 0, "502"},
		{"a length beyond the limit", sends(debug), 100, "more than 100"},
		{"more than the limit without a length", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, 1 << 20, "more than 1048576"},
		{"a redirection without end", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, 0, "redirected too often"},
	} {
		handle, asked = bad.handle, 0
		c := client()
		c.limit = bad.limit
		for range 2 {
			if f := c.File(t.Context(), &b); f != nil {
				t.Errorf("%s: a file was taken", bad.name)
			}
		}
		problems := strings.Join(c.Problems(), "\n")
		if !strings.Contains(problems, bad.want) || strings.Count(problems, "\n") > 0 {
			t.Errorf("%s: said %q", bad.name, problems)
		}
		if asked > maxRedirects+1 || bad.name != "a redirection without end" && asked != 1 {
			t.Errorf("%s: asked %d times", bad.name, asked)
		}
		if left, _ := os.ReadDir(c.Cache); len(left) > 0 {
			t.Errorf("%s: %v was kept", bad.name, left)
		}
	}
	var none *Client
	if none.File(t.Context(), &b) != nil || New(nil, "", credentials.Credentials{}) != nil {
		t.Error("a client without servers fetches")
	}
}

func TestParse(t *testing.T) {
	if got, err := Parse([]string{"https://a.example/x/ http://127.0.0.1:8002", "http://b,https://c"}); err != nil || strings.Join(got, " ") != "https://a.example/x http://127.0.0.1:8002 http://b https://c" {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"ftp://a", "a.example", "http://", "file:///etc", "http://a?x", "http://[::1"} {
		if got, err := Parse([]string{bad}); err == nil {
			t.Errorf("%q gives %q", bad, got)
		}
	}
}
