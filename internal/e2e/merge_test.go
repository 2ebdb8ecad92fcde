package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// The log of a program that writes its own eventlog can be merged with that: our samples of
// a thread lie within the runs of the thread that the run-time system logged. The log is
// also followed while it is recorded.
func TestMergeWithTheRunTimeSystemsLog(t *testing.T) {
	testprog.NeedRoot(t)
	program := testprog.Build(t, "threads100", testprog.Options{Threaded: true, Flags: []string{"-eventlog", "-rtsopts"}})
	dir := t.TempDir()
	program = testprog.CopyTo(t, program, dir)
	log, theirs := filepath.Join(dir, "ours.eventlog"), filepath.Join(dir, "threads100.eventlog")
	// gc and threads are left out: the other log has the same events.
	cmd := command(t, ccagent, "record", "-o", log, "-e", "cycles", "--", program, "2000", "6", "0", "+RTS", "-l", "-N2", "-RTS")
	cmd.Dir = dir
	wait := background(t, cmd)
	follows(t, log)
	if r := wait(); r.status != 0 {
		t.Fatalf("status %d\n%s", r.status, r.stderr)
	}
	merged := filepath.Join(dir, "merged.eventlog")
	if r := run(t, command(t, ccview, "export", "--to", "eventlog", "-o", merged, log, theirs)); r.status != 0 {
		t.Fatalf("status %d\n%s", r.status, r.stderr)
	}
	ours, err := profile.Open(log, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Open(merged, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Samples() != ours.Samples() || p.Accounting.Malformed > 0 || p.Accounting.Undefined.Sum() > 0 || len(p.RTSLog.Runs) == 0 || !p.Symbolised {
		t.Fatalf("%d samples of %d, %d runs, %+v", p.Samples(), ours.Samples(), len(p.RTSLog.Runs), p.Accounting)
	}

	// The clocks agree: a Haskell thread's sample is within one of its runs.
	in, out := 0, 0
	for i := range p.Samples() {
		s := p.Sample(i)
		if s.Thread.TSO == 0 || s.Flags&eventlog.SampleContext != 0 {
			continue
		}
		if runs(p, &s) {
			in++
		} else {
			out++
		}
	}
	t.Logf("%d samples in runs of their threads, %d not", in, out)
	if in < 20 {
		t.Errorf("%d samples lie in a run of their thread", in)
	}
	wantShareAbove(t, "samples in a run of their thread", in, in+out, 0.98)
}

// slack is the delay with which the RTS may log the begin and end of a run.
const slack = 200_000 // ns

func runs(p *profile.Profile, s *columns.Sample) bool {
	for i := range p.RTSLog.Runs {
		r := &p.RTSLog.Runs[i]
		if uint64(r.Thread) == s.Thread.TSO && s.Time+slack >= r.Start && s.Time <= r.End+slack {
			return true
		}
	}
	return false
}

// follows waits for samples in a log that is being recorded, reads on until there are more,
// and opens it with a command.
func follows(t *testing.T, log string) {
	t.Helper()
	eventually(t, "a log to follow", func() bool {
		st, err := os.Stat(log)
		return err == nil && st.Size() > 0
	})
	f, err := columns.Follow(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	more := func(than int) func() bool {
		return func() bool {
			if _, err := f.Poll(); err != nil {
				t.Fatal(err)
			}
			return f.Log().Samples() > than
		}
	}
	eventually(t, "a sample in it", more(0))
	first := f.Log().Samples()
	if r := run(t, command(t, ccview, "info", log)); r.status != 0 || !strings.Contains(r.stdout, "being written") && f.State() == columns.FollowGrowing {
		t.Errorf("ccview info of a log that is being written: status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	grown := more(first)
	eventually(t, "more samples, or the log's end", func() bool { return grown() || f.State() != columns.FollowGrowing })
	eventually(t, "the log's end", func() bool {
		_, err := f.Poll()
		return err != nil || f.State() != columns.FollowGrowing
	})
	p := f.Log()
	if f.State() != columns.FollowEnded || !p.Symbolised || !p.HaveEnd || p.Accounting.Malformed > 0 {
		t.Errorf("in the end the log is %s, symbolised %t, %+v", f.State(), p.Symbolised, p.Accounting)
	}
}
