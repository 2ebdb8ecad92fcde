package hwtest_test

import (
	"bufio"
	"cmp"
	"debug/elf"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/hwtest"
	"ccagent/internal/testprog"
)

// What is measured by the run-time system's code and data works on arm64, and finds what the run-time
// system and the programs count themselves.
func TestRunTimeSystem(t *testing.T) {
	image := kernel(t, "arm64-6.1")
	ghc := filepath.Join(fetched(t), "tools-arm64", "ghc")
	if _, err := os.Stat(ghc); err != nil {
		unavailable(t, "ghc-arm64", "GHC for arm64")
	}
	files := agentFiles(t, "arm64")
	delete(files, "/bin/bpf")
	forDaemon(files)
	for name, threaded := range map[string]bool{
		"alloc31": false, "rev": false, "threads100": true, "retain": true, "standstill": true, "conflict": true, "blocked": true, "twice": true,
	} {
		options := testprog.Options{GHC: ghc, Threaded: threaded, Flags: []string{"-optl-static", "-finfo-table-map"}}
		files["/bin/"+name] = read(t, testprog.Build(t, name, options))
	}
	for name, program := range map[string]string{"pie": "alloc31", "pieheap": "retain"} {
		exe := testprog.Build(t, program, testprog.Options{
			GHC: ghc, Threaded: true, Flags: append([]string{"-finfo-table-map"}, staticPIE...),
		})
		wantStaticPIE(t, exe)
		files["/bin/"+name] = read(t, exe)
	}
	files["/bin/centres"] = read(t, testprog.Build(t, "rev", testprog.Options{
		GHC: ghc, Prof: true, Flags: []string{"-optl-static", "-finfo-table-map"},
	}))
	shared := testprog.Build(t, "alloc31", testprog.Options{GHC: ghc, Dynamic: true, Threaded: true, Flags: []string{"-finfo-table-map"}})
	files["/bin/shared"] = read(t, shared)
	addLibraries(t, files, filepath.Join(fetched(t), "ghc-arm64"), shared)
	own := func(name string) string { return "/tmp/" + name + "-own.eventlog" }
	withOwn := func(j hwtest.Job) hwtest.Job {
		j.Argv = append(j.Argv, "+RTS", "-l", "-ol"+own(j.Name), "-RTS")
		j.Files = append(j.Files, own(j.Name))
		return j
	}
	// The emulator makes collections, and what stops them, slow.
	heap := beside("at rest", 1, []string{"/bin/pieheap", "2000", "20", "rest", "+RTS", "-hT", "-i0", "-l-au", "-ol" + own("heap"), "-RTS"},
		"heap", "--max-pause", "10m", "-o", "/tmp/heap.eventlog", "PID")
	heap.Name, heap.Files = "heap", []string{"/tmp/heap.eventlog", own("heap")}
	threads := beside("ready", 0, []string{"/bin/standstill"}, "threads", "--format", "json", "PID")
	threads.Name = "threads"
	centres := record("centres", []string{"-e", "cpu-clock,alloc", "-F", "499"}, "/bin/centres", "220", "200", "+RTS", "-s", "-p", "-po/tmp/report")
	centres.Files = append(centres.Files, "/tmp/report.prof")
	done := boot(t, hwtest.Machine{Arch: "arm64", Kernel: image, CPUs: 2}, files, []hwtest.Job{
		record("alloc", []string{"-e", "alloc"}, "/bin/alloc31", "500", "+RTS", "-s"),
		record("pie", []string{"-e", "cpu-clock,alloc,gc", "-F", "499"}, "/bin/pie", "500", "+RTS", "-s"),
		withOwn(record("gc", []string{"-e", "gc"}, "/bin/retain", "500", "20", "+RTS", "-N2", "-A256k", "-RTS")),
		withOwn(record("timeline", []string{"-e", "threads"}, "/bin/threads100", "300", "10", "2", "+RTS", "-N2", "-RTS")),
		record("tick", []string{"-e", "tick"}, "/bin/rev", "220", "200"),
		record("stm", []string{"-e", "stm"}, "/bin/conflict", "40", "3", "2000"),
		record("blocked", []string{"-e", "blocked"}, "/bin/blocked", "20", "4"),
		record("duplicated", []string{"-e", "duplicated", "-F", "499"}, "/bin/twice", "together", "40", "300", "+RTS", "-N2"),
		centres,
		record("shared", []string{"-e", "cpu-clock,alloc,gc", "-F", "499"}, "/bin/shared", "500", "+RTS", "-s"),
		heap, threads, attachJob, daemonJob,
	})
	wantAllocation(t, done["alloc"])
	wantAllocation(t, done["pie"])
	wantCollections(t, done["gc"])
	wantThreads(t, done["timeline"])
	// How many ticks there are depends on the host: with two CPUs time is not counted.
	wantRev(t, logOf(t, done["tick"]), "tick", 30)
	wantTransactions(t, done["stm"])
	wantWaits(t, done["blocked"])
	wantCensus(t, done["heap"])
	wantStandstill(t, done["threads"])
	wantDuplicated(t, done["duplicated"])
	wantCentres(t, done["centres"])
	wantShared(t, done["shared"])
	wantRev(t, logOf(t, done["attach"]), "cpu-clock", few)
	wantPiece(t, done["daemon"])
}

// staticPIE are the flags with which GHC links a static program that is position-independent.
var staticPIE = []string{"-fPIC", "-pie", "-optl-static-pie"}

// wantStaticPIE checks that a program is position-independent and needs neither a dynamic linker nor libraries.
func wantStaticPIE(t *testing.T, exe string) {
	t.Helper()
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	interpreted := slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	if f.Type != elf.ET_DYN || interpreted || len(needed) > 0 || err != nil {
		t.Errorf("%s is no static-pie: %v, needs %q, has an interpreter: %v; %v", exe, f.Type, needed, interpreted, err)
	}
}

// beside is the job that runs ccagent beside a program that has printed a line and was answered so many.
func beside(line string, answers int, program []string, ccagent ...string) hwtest.Job {
	return hwtest.Job{
		Argv:    slices.Concat([]string{hwtest.Guest, "beside", line, strconv.Itoa(answers)}, program, []string{"--", "/bin/ccagent"}, ccagent),
		Seconds: jobSeconds,
	}
}

// logs stores the log that a job has produced and the program's own, and opens them.
func logs(t *testing.T, r hwtest.Result) (log string, ours, theirs *eventlog.Reader) {
	t.Helper()
	open := func(suffix string) (string, *eventlog.Reader) {
		data, ok := r.Files["/tmp/"+r.Name+suffix+".eventlog"]
		if r.Status != 0 || !ok {
			t.Fatalf("%s: status %d\n%s%s", r.Name, r.Status, r.Stdout, r.Stderr)
		}
		path := filepath.Join(t.TempDir(), r.Name+".eventlog")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path, eventlog.NewReader(bufio.NewReader(strings.NewReader(string(data))))
	}
	_, theirs = open("-own")
	log, ours = open("")
	return log, ours, theirs
}

var allocated = regexp.MustCompile(`([0-9,]+) bytes allocated in the heap`)

// wantBytes checks that as many bytes were sampled as +RTS -s printed to stderr.
func wantBytes(t *testing.T, log, stderr string) (bytes, want float64) {
	t.Helper()
	said := allocated.FindStringSubmatch(stderr)
	if said == nil {
		t.Fatalf("the run-time system says nothing of allocation:\n%s", stderr)
	}
	want, err := strconv.ParseFloat(strings.ReplaceAll(said[1], ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	var info infoJSON
	view(t, &info, "info", log)
	for _, e := range info.Events {
		if e.Name == "alloc" {
			bytes = e.Weight
		}
	}
	if bytes < 0.99*want || bytes > 1.01*want {
		t.Errorf("%.0f bytes were sampled, the run-time system counted %.0f", bytes, want)
	}
	return bytes, want
}

// wantAllocation checks a capture of the program alloc31 with +RTS -s: the bytes, and who has allocated them.
func wantAllocation(t *testing.T, r hwtest.Result) (bytes, want float64) {
	t.Helper()
	log := logOf(t, r)
	bytes, want = wantBytes(t, log, r.Stderr)
	var hot struct {
		Rows []struct {
			Element, File    string
			Line             int
			Share, Low, High float64
		}
	}
	view(t, &hot, "hot", log, "--event", "alloc", "--level", "binding")
	shares := map[string]float64{}
	for _, row := range hot.Rows {
		want, ok := map[string]float64{"Main.three": 0.75, "Main.one": 0.25}[row.Element]
		if !ok {
			continue
		}
		shares[row.Element] = row.Share
		// Two and a half times the interval are five standard deviations.
		if diff := row.Share - want; diff > 0.01+2.5*(row.High-row.Share) || -diff > 0.01+2.5*(row.Share-row.Low) {
			t.Errorf("%s has %.4f of the bytes, want %.2f", row.Element, row.Share, want)
		}
	}
	if len(shares) != 2 {
		t.Errorf("the bytes are of %+v", hot.Rows)
	}
	t.Logf("alloc: %.0f bytes, the run-time system counted %.0f; %v", bytes, want, shares)
	return bytes, want
}

// addLibraries adds the loader and all shared libraries of a program, which are in a tree of Debian's packages for arm64.
func addLibraries(t *testing.T, files hwtest.Initramfs, tree, exe string) {
	t.Helper()
	files["/lib/ld-linux-aarch64.so.1"] = read(t, filepath.Join(tree, "lib/aarch64-linux-gnu/ld-linux-aarch64.so.1"))
	for todo := []string{exe}; len(todo) > 0; todo = todo[1:] {
		f, err := elf.Open(todo[0])
		if err != nil {
			t.Fatal(err)
		}
		names, err := f.ImportedLibraries()
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", todo[0], err)
		}
		for _, name := range names {
			if _, have := files["/lib/"+name]; have {
				continue
			}
			var found []string
			for _, dir := range []string{"usr/lib/ghc/lib/*-ghc-*", "lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu"} {
				at, err := filepath.Glob(filepath.Join(tree, dir, name))
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, at...)
			}
			if len(found) == 0 {
				t.Fatalf("%s needs %s, which is not in %s", todo[0], name, tree)
			}
			files["/lib/"+name] = read(t, found[0])
			todo = append(todo, found[0])
		}
	}
}

// wantCentres checks a capture of a program of the profiling way with the report that its run-time system makes of the same run:
// what each cost centre has allocated, and how much of the time rev's has.
func wantCentres(t *testing.T, r hwtest.Result) {
	t.Helper()
	report := string(r.Files["/tmp/report.prof"])
	delete(r.Files, "/tmp/report.prof")
	log := logOf(t, r)
	wantWhole(t, log, "cpu-clock", few)
	wantBytes(t, log, r.Stderr)
	for _, event := range []string{"alloc", "cpu-clock"} {
		var centres struct {
			Samples float64
			Rows    []struct {
				Centre     string `json:"cost_centre"`
				Individual float64
			}
		}
		view(t, &centres, "ccs", log, "--mode", "exact", "--event", event, "--category", "haskell,stg,foreign,rts")
		ours := map[string]float64{}
		for _, row := range centres.Rows {
			ours[row.Centre] += row.Individual
		}
		column, room := 4, 0.03
		if event == "cpu-clock" {
			// Its ticks are few, and come when the emulator has time for them.
			column, room = 3, 0.2
		}
		checked := 0
		for _, name := range []string{"rev", "upto", "total"} {
			for line := range strings.Lines(report) { // name, module, source, % time, % alloc
				f := strings.Fields(line)
				if len(f) != 5 || f[0] != name || f[1] != "Main" {
					continue
				}
				checked++
				want, err := strconv.ParseFloat(f[column], 64)
				if err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				got := ours["Main."+name]
				t.Logf("centres: %s has %.4f of %s, the report %.4f", name, got, event, want/100)
				if diff := got - want/100; math.Abs(diff) > room+sigmas*math.Sqrt(want/100*(1-want/100)/centres.Samples) {
					t.Errorf("%s has %.4f of %s, the report has %.4f", name, got, event, want/100)
				}
			}
		}
		if checked < 2 {
			t.Errorf("the report of %d centres that are compared:\n%s", checked, report)
		}
	}
}

// wantShared checks a capture of a program that uses GHC's shared libraries: its stacks, the bytes, and who has allocated them. Debian's
// libraries have no symbol table, so that collections cannot be seen, which is said.
func wantShared(t *testing.T, r hwtest.Result) {
	t.Helper()
	wantWhole(t, logOf(t, r), "cpu-clock", few)
	wantAllocation(t, r)
	wantLine(t, r.Stderr, "ccagent: gc: not available")
}

// wantCollections checks that a log has the collections that the program's own has, with all their figures.
func wantCollections(t *testing.T, r hwtest.Result) {
	t.Helper()
	_, ours, theirs := logs(t, r)
	collections := func(l *eventlog.Reader) (all []eventlog.GCStats, parallel int) {
		for l.Next() {
			if e, ok := l.Record().Event.(*eventlog.GCStats); ok {
				all = append(all, *e)
				if e.Threads > 1 {
					parallel++
				}
			}
		}
		// The run-time system writes what each capability has buffered: not by time.
		slices.SortFunc(all, func(a, b eventlog.GCStats) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		return all, parallel
	}
	a, _ := collections(ours)
	b, parallel := collections(theirs)
	t.Logf("gc: %d collections, %d parallel", len(b), parallel)
	if !slices.Equal(a, b) || parallel < 2 {
		t.Errorf("%d collections, and %d of the run-time system's, %d of them parallel:\n%+v\n%+v", len(a), len(b), parallel, a, b)
	}
}

// wantThreads checks that threads are created, run and labelled as in the program's own log.
func wantThreads(t *testing.T, r hwtest.Result) {
	t.Helper()
	_, ours, theirs := logs(t, r)
	count := func(l *eventlog.Reader) (created []uint32, ran int, labels map[string]bool) {
		labels = map[string]bool{}
		for l.Next() {
			switch e := l.Record().Event.(type) {
			case *eventlog.CreateThread:
				created = append(created, e.Thread)
			case *eventlog.RunThread:
				ran++
			case *eventlog.ThreadLabel:
				labels[e.Label] = true
			}
		}
		slices.Sort(created)
		return created, ran, labels
	}
	created, ran, labels := count(ours)
	ownCreated, ownRan, ownLabels := count(theirs)
	t.Logf("threads: %d created, %d runs; the run-time system: %d, %d", len(created), ran, len(ownCreated), ownRan)
	// Their log begins and ends a little earlier or later than ours.
	if !slices.Equal(created, ownCreated) || ran < ownRan-5 || ran > ownRan+5 || len(labels) != len(ownLabels) || len(labels) == 0 {
		t.Errorf("threads %v were created and ran %d times, with labels %v; the run-time system says %v, %d, %v", created, ran, labels, ownCreated, ownRan, ownLabels)
	}
}

// wantTransactions checks a capture of the program conflict.
func wantTransactions(t *testing.T, r hwtest.Result) {
	t.Helper()
	log := logOf(t, r)
	var audits, failed, transfers, exceptions float64
	if _, err := fmt.Sscanf(r.Stdout, "audits %f failed %f transfers %f exceptions %f", &audits, &failed, &transfers, &exceptions); err != nil {
		t.Fatalf("the program says %q", r.Stdout)
	}
	type figure struct{ Value float64 }
	var info struct {
		Transactions struct {
			Exact                 bool
			Committed, Exceptions figure
			Failed                figure `json:"failed_validation"`
		}
	}
	view(t, &info, "info", log)
	s := info.Transactions
	t.Logf("stm: %+v; the program says %s", s, r.Stdout)
	if want := 3*audits + transfers; !s.Exact || s.Committed.Value != want || s.Exceptions.Value != exceptions {
		t.Errorf("%+v, the program says %.0f have committed and %.0f were left by an exception", s, want, exceptions)
	}
	// Those that wait may fail, too.
	if f := s.Failed.Value; f < failed || f > failed+audits {
		t.Errorf("%v have failed, the program says %.0f", f, failed)
	}
}

// wantDuplicated checks that as much of the CPU time is said to have been evaluation that another thread did too as the program counts.
func wantDuplicated(t *testing.T, r hwtest.Result) {
	t.Helper()
	var again, all float64
	if _, err := fmt.Sscanf(r.Stdout, "%f of %f pieces were done again", &again, &all); err != nil {
		t.Fatalf("the program says %q", r.Stdout)
	}
	var info struct {
		Duplicated *struct{ Low, High float64 } `json:"duplicated_evaluation"`
	}
	view(t, &info, "info", logOf(t, r))
	t.Logf("duplicated: %+v; the program says %.3f", info.Duplicated, again/all)
	// The emulator runs one CPU for long before the other, and its timers come late.
	const systematic = 0.15
	if d := info.Duplicated; d == nil || again/all < d.Low-systematic || again/all > d.High+systematic {
		t.Errorf("%+v of the CPU time, the program says %.3f", d, again/all)
	}
}

// wantWaits checks that the ways in which the program blocked waits are found, with who waits where its frame is
// still on the stack: what a function does last has none of its own.
func wantWaits(t *testing.T, r hwtest.Result) {
	t.Helper()
	var stacks stacksJSON
	view(t, &stacks, "stacks", logOf(t, r), "--event", "blocked")
	for _, name := range []string{"(MVar)", "(STM)", "(foreign call)", "(black hole)", "Main.callOut", "Main.demand"} {
		if share := stacks.Root.through(name) / stacks.Total; share < 0.05 {
			t.Errorf("%s has %.3f of the waiting, of which each way has a fifth", name, share)
		}
	}
}

// wantCensus checks that the run-time system's own censuses have one with what ours has, by band. Of the
// arrays in a pinned block it counts the first alone.
func wantCensus(t *testing.T, r hwtest.Result) (bands int) {
	t.Helper()
	_, ours, theirs := logs(t, r)
	censuses := func(l *eventlog.Reader) (all []map[string]uint64) {
		for l.Next() {
			switch e := l.Record().Event.(type) {
			case *eventlog.HeapSampleBegin:
				all = append(all, map[string]uint64{})
			case *eventlog.HeapSampleString:
				all[len(all)-1][e.Label] += e.Bytes
			}
		}
		return all
	}
	census, own := censuses(ours), censuses(theirs)
	if len(census) != 1 || len(own) == 0 {
		t.Fatalf("%d censuses, and %d of the run-time system's", len(census), len(own))
	}
	var differ []string
	for i, c := range own {
		var now []string
		for _, names := range []map[string]uint64{census[0], c} {
			for name := range names {
				if name != "ARR_WORDS" && census[0][name] != c[name] && !slices.Contains(now, name) {
					now = append(now, name)
				}
			}
		}
		if i == 0 || len(now) < len(differ) {
			differ = now
		}
	}
	t.Logf("heap: %d bands, %d censuses of the run-time system", len(census[0]), len(own))
	if len(differ) > 0 || len(census[0]) < 40 {
		t.Errorf("of %d bands %q differ from those of each census of the run-time system", len(census[0]), differ)
	}
	return len(census[0])
}

// wantStandstill checks a dump of the threads of the program standstill: those that it lists, their stacks to
// the root, with places in the source that the info table map has.
func wantStandstill(t *testing.T, r hwtest.Result) {
	t.Helper()
	said, text, ok := strings.Cut(r.Stdout, "\n{\n")
	var d struct {
		Threads []struct {
			ID    uint64
			Label string
			State string
			Stop  string `json:"stack_stop"`
			OS    int    `json:"os_thread"`
			Stack []struct {
				Name, File string
				Line       int
			}
		}
	}
	if !ok {
		t.Fatalf("threads: status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	if err := json.Unmarshal([]byte("{\n"+text), &d); err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for _, th := range d.Threads {
		states[th.Label] = th.State
		if th.Stop != "root" && th.State != "finished" {
			t.Errorf("the stack of %q ends by %s", th.Label, th.Stop)
		}
		if th.Label == "waiter 1" && (len(th.Stack) == 0 || th.Stack[0].Name != "Main.standstill" || th.Stack[0].File != "Main.hs" || th.Stack[0].Line == 0) {
			t.Errorf("the stack of %q is %+v", th.Label, th.Stack)
		}
		if th.Label == "holder" && th.OS == 0 {
			t.Errorf("no OS thread makes the call of %q", th.Label)
		}
		status := fmt.Sprintf("status %d %q ", th.ID, th.Label)
		if !strings.Contains(said, status) {
			t.Errorf("the program does not say %q", status)
		}
	}
	for label, want := range map[string]string{
		"holder": "foreign call", "waiter 1": "mvar", "waiter 2": "mvar", "waiter 3": "mvar", "left first": "mvar", "right first": "mvar",
		"putter": "mvar", "reader": "mvar read", "evaluator": "mvar", "forcer 1": "black hole", "forcer 2": "black hole",
		"transaction": "stm", "deaf": "mvar read", "thrower": "throwTo", "sleeper": "mvar",
	} {
		if states[label] != want {
			t.Errorf("%q is %q, want %s", label, states[label], want)
		}
	}
}
