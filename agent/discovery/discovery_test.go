package discovery

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// A program compiled by GHC is found by its file, and called as its environment says.
func TestHaskellIsFound(t *testing.T) {
	exe := testprog.Build(t, "spin31", testprog.Options{})
	cmd := exec.Command(exe, "1000000000")
	cmd.Env = append(os.Environ(), "OTEL_SERVICE_NAME=api")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	testprog.WaitExecuted(t, cmd.Process.Pid)
	all, err := New().All()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, p := range all {
		if p.PID == uint32(os.Getpid()) {
			t.Errorf("a Go program is taken for Haskell: %+v", p)
		}
		if p.PID == uint32(cmd.Process.Pid) {
			found = true
			if p.Path != exe || p.Service != "api" || p.GHC == "" || p.Way == "" || p.UID != uint32(os.Getuid()) {
				t.Errorf("found %+v", p)
			}
		}
	}
	if !found {
		t.Errorf("process %d is not found", cmd.Process.Pid)
	}
}

func TestCgroups(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for _, c := range []struct{ text, path, unit, container string }{
		{"0::/\n", "/", "", ""},
		{"0::/system.slice/api.service\n", "/system.slice/api.service", "api.service", ""},
		{"0::/user.slice/user-1.slice/user@1.service/app.slice/x.service\n", "/user.slice/user-1.slice/user@1.service/app.slice/x.service", "x.service", ""},
		{"0::/system.slice/docker-" + id + ".scope\n", "/system.slice/docker-" + id + ".scope", "", id},
		{"0::/kubepods/pod1/" + id + "/init\n", "/kubepods/pod1/" + id + "/init", "", id},
		{"2:cpu:/a\n1:name=systemd:/b\n0::/c\n", "/c", "", ""},
		{"9:pids:/\n2:cpu:/\n1:name=systemd:/system.slice/api.service\n", "/system.slice/api.service", "api.service", ""},
		{"9:pids:/\n2:cpu:/\n1:name=systemd:/system.slice/api.service\n0::/\n", "/system.slice/api.service", "api.service", ""},
		{"2:cpu:/docker/" + id + "\n1:name=systemd:/docker/" + id + "\n0::/system.slice/containerd.service\n", "/docker/" + id, "", id},
	} {
		if path, unit, container := parseCgroup([]byte(c.text)); path != c.path || unit != c.unit || container != c.container {
			t.Errorf("%q: %q, %q, %q", c.text, path, unit, container)
		}
	}
}

func TestServiceNames(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "A=b\x00OTEL_SERVICE_NAME=api\x00": "api",
		"OTEL_RESOURCE_ATTRIBUTES=a=b,service.name=web\x00":                      "web",
		"OTEL_RESOURCE_ATTRIBUTES=service.name=web\x00OTEL_SERVICE_NAME=api\x00": "api",
		"OTEL_SERVICE_NAME=\x00": "",
	} {
		if got, _ := parseEnvironment([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Labels are those of the environment, percent-decoded, and no more than there is room for.
func TestLabels(t *testing.T) {
	_, labels := parseEnvironment([]byte("A=b\x00OTEL_RESOURCE_ATTRIBUTES=team=pay%20roll, tier = 1,none,=x\x00"))
	if want := map[string]string{"team": "pay roll", "tier": "1"}; !maps.Equal(labels, want) {
		t.Errorf("labels %v, want %v", labels, want)
	}
	var many strings.Builder
	for i := range 2 * maxLabels {
		fmt.Fprintf(&many, "k%d=v,", i)
	}
	if _, labels := parseEnvironment([]byte("OTEL_RESOURCE_ATTRIBUTES=" + many.String())); len(labels) != maxLabels {
		t.Errorf("%d labels", len(labels))
	}
}

func FuzzNames(f *testing.F) {
	f.Add([]byte("0::/system.slice/api.service\n"))
	f.Add([]byte("OTEL_RESOURCE_ATTRIBUTES=service.name=../..\x00"))
	f.Add([]byte("0::/" + strings.Repeat("a", 64) + ".scope"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, unit, _ := parseCgroup(text)
		service, labels := parseEnvironment(text)
		if len(labels) > maxLabels {
			t.Errorf("%d labels", len(labels))
		}
		for _, name := range []string{unit, service, string(text)} {
			clean := Clean(name)
			if len(clip(name)) > maxName || clean == "" || clean[0] == '.' || filepath.Base(clean) != clean {
				t.Errorf("%q becomes %q", name, clean)
			}
		}
	})
}
