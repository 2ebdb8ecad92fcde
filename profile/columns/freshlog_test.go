package columns

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// A log that the installed GHC's RTS writes now.
func TestFreshRTSLog(t *testing.T) {
	exe := testprog.Build(t, "threads100", testprog.Options{Threaded: true, Flags: []string{"-eventlog"}})
	dir := t.TempDir()
	cmd := exec.Command(testprog.CopyTo(t, exe, dir), "10", "40", "4", "+RTS", "-l", "-N2")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := os.Open(filepath.Join(dir, "threads100.eventlog"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := Load(f)
	if err != nil {
		t.Fatal(err)
	}
	l := &p.RTSLog
	if !strings.HasPrefix(p.RTS, "GHC-") || l.Caps != 2 || l.Created < 10 || len(l.Runs) < 10 || l.PID != uint32(cmd.Process.Pid) || l.WallNs == 0 || l.Stats.Allocated == 0 {
		t.Errorf("%s %+v", p.RTS, l)
	}
	last := make(map[uint16]uint64)
	for _, r := range l.Runs {
		if r.Start < last[r.Cap] || r.End < r.Start || r.End > p.Duration {
			t.Fatalf("run %+v after %d", r, last[r.Cap])
		}
		last[r.Cap] = r.End
	}
}
