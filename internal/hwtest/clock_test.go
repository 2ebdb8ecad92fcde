package hwtest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ccagent/internal/hwtest"
	"ccagent/internal/testprog"
)

// maxPieces is more than the daemon writes while its clock is changed three times: one after each, and each minute.
const maxPieces = 30

// The daemon goes on sampling where the wall clock is set ahead, set back, and where the machine is suspended; what it
// has of each time says when that was, by the clock as it was then, and no sample is missing.
func TestDaemonWhoseClockIsSet(t *testing.T) {
	files := agentFiles(t, "amd64")
	delete(files, "/bin/bpf")
	files["/bin/rev"] = read(t, testprog.Build(t, "rev", testprog.Options{Flags: []string{"-optl-static"}}))
	forDaemon(files)
	job := hwtest.Job{Name: "clock", Seconds: jobSeconds, Argv: []string{
		hwtest.Guest, "clock", "200", "/tmp/piece", "/bin/rev", "220", forever,
	}}
	for i := range maxPieces {
		job.Files = append(job.Files, fmt.Sprintf("/tmp/piece%d.eventlog", i))
	}
	done := boot(t, hwtest.Machine{Arch: "amd64", Kernel: kernel(t, "amd64-6.12"), CPUs: 2}, files, []hwtest.Job{job})["clock"]
	if done.Status != 0 {
		t.Fatalf("status %d\n%s%s", done.Status, done.Stdout, done.Stderr)
	}
	var said struct {
		Periods []struct{ From, To time.Time }
		Samples float64
	}
	if err := json.Unmarshal([]byte(done.Stdout), &said); err != nil {
		t.Fatalf("%v in %q", err, done.Stdout)
	}
	dir := t.TempDir()
	samples := 0.0
	within := make([]float64, len(said.Periods)) // samples of pieces that began in each period
	for name, data := range done.Files {
		path := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		var info infoJSON
		view(t, &info, "info", path)
		begin := info.Program.Start
		n := 0.0
		for _, e := range info.Events {
			n += e.Samples
		}
		samples += n
		t.Logf("%s: %v, %v samples in %v s", filepath.Base(name), begin, n, info.Duration)
		for i, p := range said.Periods {
			if !begin.Before(p.From) && !begin.After(p.To) {
				within[i] += n
			}
		}
	}
	for i, n := range within {
		t.Logf("%v to %v: %v samples", said.Periods[i].From, said.Periods[i].To, n)
		if n < 100 {
			t.Errorf("pieces of period %d have %v samples, ps had counted 200 more", i, n)
		}
	}
	if samples < said.Samples {
		t.Errorf("all pieces together have %v samples, ps counted %v", samples, said.Samples)
	}
}
