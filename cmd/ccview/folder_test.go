package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ccagent/eventlog"
	"ccagent/profile/logtest"
)

// in runs the command in this process.
func in(args ...string) result {
	var stdout, stderr bytes.Buffer
	status := run(args, &stdout, &stderr)
	return result{status, stdout.String(), stderr.String()}
}

// daemonFolder is a folder as the daemon leaves it: two processes of api on two hosts, of two
// builds, and one of worker; each piece is of a minute, and has 1 ns at its 10th second and weight
// at its 50th.
func daemonFolder(t *testing.T, start time.Time) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i, x := range []struct {
		service, host, program string
		pid                    uint32
		minute                 int
		weight                 uint64
	}{
		{"api", "one", "/v1/api", 100, 0, 10}, {"api", "one", "/v1/api", 100, 1, 100}, {"api", "two", "/v2/api", 100, 1, 1000},
		{"worker", "one", "/worker", 7, 1, 10000},
	} {
		l := logtest.New()
		b := l.Binding("main", "Main", "main", 0)
		node := l.Stack(l.Code(b, eventlog.QualityExact, eventlog.CategoryHaskell))
		l.Sample(10e9, 1, node)
		l.Sample(50e9, x.weight, node)
		log := logtest.Of(l.End(), eventlog.Capture{PID: x.pid, Program: x.program,
			Labels: []eventlog.Label{{Key: eventlog.LabelHost, Value: x.host}, {Key: eventlog.LabelService, Value: x.service}}}, 0)
		log = logtest.Changed(log, func(rec *eventlog.Record) {
			if c, is := rec.Event.(*eventlog.Capture); is {
				c.StartUnixNs = uint64(start.Add(time.Duration(x.minute) * time.Minute).UnixNano())
			}
		})
		path := filepath.Join(dir, x.service, fmt.Sprintf("%d-%d.eventlog", x.pid, i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, log, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A folder's logs are one log: of a service, a host, a build, and a stretch of wall-clock time.
func TestFolder(t *testing.T) {
	start := time.Now().Add(-time.Hour).Truncate(time.Minute)
	dir := daemonFolder(t, start)
	at := func(s int) string { return start.Add(time.Duration(s) * time.Second).Format("2006-01-02 15:04:05") }
	for _, c := range []struct {
		args  []string
		total float64
	}{
		{nil, 11114}, {[]string{"--service", "api"}, 1113}, {[]string{"--service", "api", "--host", "one"}, 112},
		{[]string{"--service", "worker,api", "--range", at(60) + "-" + at(75)}, 3}, {[]string{"--range", at(30) + "-" + at(60)}, 10},
		{[]string{"--last", "2h"}, 11114},
		{[]string{"--service", "api", "--range", "100-"}, 1100}, {[]string{"--build", fmt.Sprintf("%x", "/v2/api")}, 1001},
	} {
		r := in(append([]string{"hot", dir, "--format", "json"}, c.args...)...)
		var hot struct{ Total float64 }
		if err := json.Unmarshal([]byte(r.stdout), &hot); err != nil || r.status != 0 || r.stderr != "" || hot.Total != c.total {
			t.Errorf("hot %v: status %d, %v of %v: %v %s", c.args, r.status, hot.Total, c.total, err, r.stderr)
		}
	}

	r := in("hot", dir, "--last", "1m")
	if r.status != exitWrongCall || !strings.Contains(r.stderr, "none of the 4 logs") {
		t.Errorf("of the last minute: %+v", r)
	}

	r = in("hot", dir, "--service", "api")
	for _, want := range []string{"Main.main [/v1/api]", "Main.main [/v2/api]"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
	r = in("diff", dir+"?service=api&host=one", dir+"?service=api&host=two", "--format", "json")
	if r.status != 0 || !strings.Contains(r.stdout, `"a_total": 112`) || !strings.Contains(r.stdout, `"b_total": 1001`) {
		t.Errorf("diff: %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	out := filepath.Join(t.TempDir(), "one.eventlog")
	if r := in("export", "--to", "eventlog", "-o", out, "--service", "api", "--range", at(60)+"-", dir); r.status != 0 {
		t.Errorf("export: %+v", r)
	}
	if r := in("hot", out, "--range", at(61)+"-"+at(100), "--format", "json"); !strings.Contains(r.stdout, `"total": 2,`) {
		t.Errorf("the exported log, by wall clock: %+v", r)
	}
	for _, command := range []string{"info", "doctor", "stacks", "timeline", "gc", "ccs"} {
		if r := in(command, "--service", "api", dir); r.status != 0 {
			t.Errorf("%s: %+v", command, r)
		}
	}
}

// ls lists what is there, and what is not whole; neither keeps the rest from being read.
func TestFolderWithDamage(t *testing.T) {
	dir := daemonFolder(t, time.Now().Add(-time.Hour))
	whole, err := os.ReadFile(filepath.Join(dir, "worker", "7-3.eventlog"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"worker/7-3.eventlog": whole[:len(whole)-1], "api/none.eventlog": []byte("no log"), "api/100-0.eventlog.tmp": whole} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := in("ls", dir, "--format", "json")
	var ls struct {
		Pieces []struct {
			Path, Service, Host, Program, Start, End, State string
			BuildID                                         string `json:"build_id"`
		}
		Problems []struct{ Path, Reason string }
	}
	if err := json.Unmarshal([]byte(r.stdout), &ls); err != nil || len(ls.Pieces) != 4 || len(ls.Problems) != 1 || filepath.Base(ls.Problems[0].Path) != "none.eventlog" {
		t.Fatalf("ls: %v\n%+v", err, r)
	}
	i := slices.IndexFunc(ls.Pieces, func(p struct {
		Path, Service, Host, Program, Start, End, State string
		BuildID                                         string `json:"build_id"`
	}) bool {
		return p.Service == "worker"
	})
	if p := ls.Pieces[i]; p.State != "cut" || p.Host != "one" || p.Program != "/worker" || p.BuildID != fmt.Sprintf("%x", "/worker") {
		t.Errorf("worker: %+v", p)
	}
	from, _ := time.Parse(time.RFC3339Nano, ls.Pieces[0].Start)
	if to, err := time.Parse(time.RFC3339Nano, ls.Pieces[0].End); err != nil || to.Sub(from) != 50*time.Second || ls.Pieces[0].State != "whole" {
		t.Errorf("the first is of %v: %+v", to.Sub(from), ls.Pieces[0])
	}
	r = in("hot", dir, "--format", "json")
	if !strings.Contains(r.stdout, `"total": 11114`) || !strings.Contains(r.stderr, "none.eventlog") || !strings.Contains(r.stderr, "7-3.eventlog was cut off") {
		t.Errorf("hot: %+v", r)
	}
	if r := in("ls", dir); r.status != 0 || strings.Count(r.stdout, "\n") != 5 || !strings.Contains(r.stdout, "1 cut") {
		t.Errorf("ls: %+v", r)
	}
	if r := in("hot", "--service", "worker", dir); strings.Contains(r.stderr, "none.eventlog") {
		t.Errorf("hot warns of another service's file: %+v", r)
	}
	// A log that has just begun is no error.
	fresh := filepath.Join(dir, "api", "200-0.eventlog")
	if err := os.WriteFile(fresh, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour) // however long the test takes
	if err := os.Chtimes(fresh, later, later); err != nil {
		t.Fatal(err)
	}
	if r := in("hot", dir); r.status != 0 || strings.Contains(r.stderr, "200-0") || !strings.Contains(r.stderr, "none.eventlog") {
		t.Errorf("hot beside a log that has just begun: %+v", r)
	}
	if r := in("ls", dir); r.status != 0 || !strings.Contains(r.stdout, "has just begun: "+fresh) {
		t.Errorf("ls of a log that has just begun: %+v", r)
	}
	r = in("ls", dir, "--format", "json")
	if err := json.Unmarshal([]byte(r.stdout), &ls); err != nil || len(ls.Pieces) != 5 || ls.Pieces[4].State != "growing" || len(ls.Problems) != 1 {
		t.Errorf("ls of a log that has just begun: %v\n%+v", err, r)
	}
	if err := os.Chtimes(fresh, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if r := in("hot", dir); !strings.Contains(r.stderr, "200-0.eventlog") {
		t.Errorf("nothing is said of an empty file that nobody writes: %+v", r)
	}
	for args, want := range map[string]string{
		"hot --service none " + dir: "api, worker", "hot --service api " + out(dir): "is none", "hot " + t.TempDir(): "has no logs",
		"hot " + dir + "?colour=red": "choose service", "hot --last 5m --range 1-2 " + dir: "in place of --range", "hot --range 25:00-26:00 " + dir: "--range",
	} {
		if r := in(strings.Fields(args)...); r.status == 0 || !strings.Contains(r.stderr, want) || strings.Count(r.stderr, "\n") > 2 {
			t.Errorf("%s: %+v, want %q", args, r, want)
		}
	}
}

// out is a single log.
func out(dir string) string { return filepath.Join(dir, "api", "100-1.eventlog") }
