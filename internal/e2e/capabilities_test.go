package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// capabilities are what ccagent needs in place of root.
const capabilities = "bpf,perfmon,sys_ptrace,syslog,dac_read_search"

// An agent that a user runs with capabilities does not pass them on: the program that it
// starts has none, whether the agent's are ambient, as from setpriv and systemd, or those of
// its file.
func TestProgramHasNoCapabilities(t *testing.T) {
	testprog.NeedRoot(t)
	setpriv := testprog.NeedTool(t, "setpriv", "util-linux")
	setcap := testprog.NeedTool(t, "setcap", "libcap2-bin")
	dir := sharedDir(t, 0o777)
	ownFile := testprog.CopyTo(t, ccagent, sharedDir(t, 0o755))
	var list []string
	for c := range strings.SplitSeq(capabilities, ",") {
		list = append(list, "cap_"+c)
	}
	if out, err := exec.Command(setcap, strings.Join(list, ",")+"+ep", ownFile).CombinedOutput(); err != nil {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "a file system with capabilities: " + strings.TrimSpace(string(out))})
	}
	given := "+" + strings.ReplaceAll(capabilities, ",", ",+")
	asUser := []string{"--reuid", "65534", "--regid", "65534", "--clear-groups"}
	for name, argv := range map[string][]string{
		"ambient": append(asUser, "--inh-caps", given, "--ambient-caps", given, ccagent),
		"of file": append(asUser, "--inh-caps", given, ownFile),
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, setpriv, append(argv, "record", "-o", filepath.Join(dir, strings.ReplaceAll(name, " ", "-")), "--",
				"sh", "-c", "id -u; grep ^Cap /proc/self/status")...)
			cmd.Dir = dir
			cmd.Env = os.Environ()
			r := run(t, cmd)
			if r.status != 0 {
				t.Fatalf("status %d\n%s", r.status, r.stderr)
			}
			const none = "0000000000000000"
			lines := strings.Split(r.stdout, "\n")
			for i, want := range []string{"65534", "CapInh:\t" + none, "CapPrm:\t" + none, "CapEff:\t" + none} {
				if i >= len(lines) || lines[i] != want {
					t.Errorf("the program sees no %q in line %d of\n%s", want, i+1, r.stdout)
				}
			}
			if !strings.Contains(r.stdout, "CapAmb:\t"+none) {
				t.Errorf("the program has ambient capabilities:\n%s", r.stdout)
			}
		})
	}
}
