package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"ccagent/internal/testprog"
)

// The agent's CPU time in summary and log is that of all of its processes, those included that
// read the program's file and look up its names: with the program's own it is what
// the kernel says of ccagent and its children.
func TestAgentCPUIsWhole(t *testing.T) {
	exe := testprog.Build(t, "example", testprog.Options{})
	log := filepath.Join(t.TempDir(), "example.eventlog")
	cmd := command(t, ccagent, "record", "-e", "cpu-clock", "-o", log, "--", exe, "300000")
	if r := run(t, cmd); r.status != 0 {
		t.Fatalf("exit status %d\n%s", r.status, r.stderr)
	}
	all := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	var info infoJSON
	view(t, &info, "info", log)
	agent := time.Duration(info.Agent.CPUSeconds * 1e9)
	target := time.Duration(info.Events[0].Weight)
	t.Logf("agent %v, program %v, both by the kernel %v", agent, target, all)
	if d := (agent + target - all).Abs(); d > all/12 {
		t.Errorf("agent %v and program %v are not the %v that the kernel counted", agent, target, all)
	}
}
