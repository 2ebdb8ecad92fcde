package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// dumped is the JSON of a thread dump, as far as tests look at it.
type dumped struct {
	Threads []struct {
		ID        uint64   `json:"id"`
		Label     string   `json:"label"`
		State     string   `json:"state"`
		BlockedOn string   `json:"blocked_on"`
		WaitsFor  []uint64 `json:"waits_for"`
		Moved     bool     `json:"moved"`
		OSThread  int      `json:"os_thread"`
		Stop      string   `json:"stack_stop"`
		Bytes     uint64   `json:"stack_bytes"`
		Used      uint64   `json:"stack_used_bytes"`
		Stack     []frame  `json:"stack"`
	} `json:"threads"`
	Deadlocks [][]uint64 `json:"deadlocks"`
	Seconds   float64    `json:"seconds"`
	Pause     float64    `json:"pause_seconds"`
	Queues    []struct {
		Object    string   `json:"object"`
		Waiting   []uint64 `json:"waiting"`
		For       []uint64 `json:"waits_for"`
		Convoy    bool     `json:"convoy"`
		Evaluates *struct {
			Name, File string
			Line       int
		} `json:"evaluates"`
	} `json:"queues"`
}

// frame is one of a stack.
type frame struct {
	Name string `json:"name"`
	File string `json:"file"`
	Line int    `json:"line"`
}

// standing is a program that stands still, and what it says of its threads.
type standing struct {
	*exec.Cmd
	ids    map[string][]uint64 // by label
	status map[uint64]string   // of every thread, where GHC can list them
	main   uint64
	thunk  int // line of the thunk that two threads want
}

// stand starts the program standstill, and waits until it stands still.
func stand(t *testing.T, o testprog.Options, args ...string) *standing {
	t.Helper()
	s := &standing{Cmd: command(t, testprog.Build(t, "standstill", o), args...), ids: map[string][]uint64{}, status: map[uint64]string{}}
	source, err := os.ReadFile(filepath.Join(testprog.Source(t, "standstill"), "Main.hs"))
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(source), "let slow =")
	s.thunk = 1 + strings.Count(before, "\n")
	standsStill(t, s.Cmd, func(line string) {
		kind, rest, _ := strings.Cut(line, " ")
		number, rest, _ := strings.Cut(rest, " ")
		id, err := strconv.ParseUint(number, 10, 64)
		quoted, errQ := strconv.QuotedPrefix(rest)
		label, errU := strconv.Unquote(quoted)
		if err != nil || errQ != nil || errU != nil {
			t.Fatalf("the program printed %q", line)
		}
		switch kind {
		case "thread":
			s.ids[label] = append(s.ids[label], id)
		case "status":
			s.status[id] = strings.TrimSpace(rest[len(quoted):])
			if label == "main thread" {
				s.main = id
			}
		}
	})
	return s
}

// dumpsAlike are arguments of a program that stands still of which two dumps say the same: no collection runs between them. One would
// move what threads wait for, and drop a thread that has ended.
var dumpsAlike = []string{"+RTS", "-I0"}

// standsStill starts a program that prints "ready" where it stands still, and ends when its standard input does: with
// the test. The lines before are for each.
func standsStill(t *testing.T, cmd *exec.Cmd, each func(line string)) {
	t.Helper()
	in, out := testprog.Start(t, cmd)
	t.Cleanup(func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // the end of the test kills it
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "ready" {
			return
		}
		each(lines.Text())
	}
	t.Fatal("the program ended before it stood still")
}

func dumpThreads(t *testing.T, pid int, args ...string) dumped {
	t.Helper()
	r := run(t, command(t, ccagent, append([]string{"threads", "--format", "json", strconv.Itoa(pid)}, args...)...))
	if r.status != 0 {
		t.Fatalf("ccagent threads: exit status %d\n%s", r.status, r.stderr)
	}
	var d dumped
	if err := json.Unmarshal([]byte(r.stdout), &d); err != nil {
		t.Fatalf("%v\n%s", err, r.stdout)
	}
	return d
}

// statesOf says which of our states a program may see as a ThreadStatus of its own.
func statesOf(status string) []string {
	switch status {
	case "ThreadFinished":
		return []string{"finished"}
	case "ThreadDied":
		return []string{"died"}
	case "ThreadRunning":
		return []string{"running", "runnable"}
	}
	switch _, why, _ := strings.Cut(status, " "); why {
	case "BlockedOnMVar":
		return []string{"mvar", "mvar read"}
	case "BlockedOnBlackHole":
		return []string{"black hole"}
	case "BlockedOnException":
		return []string{"throwTo"}
	case "BlockedOnSTM":
		return []string{"stm"}
	case "BlockedOnForeignCall":
		return []string{"foreign call"}
	case "BlockedOnOther":
		return []string{"read", "write", "delay", "foreign call"}
	}
	return nil
}

// A dump has exactly the threads that the program knows, in its states, and the edges that follow
// from how it was built.
func TestThreadsAreThoseThatTheProgramKnows(t *testing.T) {
	testprog.NeedRoot(t)
	for name, o := range map[string]testprog.Options{
		"ghc": {Threaded: true}, "not threaded": {}, "prof": {Threaded: true, Prof: true}, "dynamic": {Threaded: true, Dynamic: true},
		"stripped": {Threaded: true, Strip: true},
		"9.6.6":    {Threaded: true, Release: "9.6.6"}, "9.10.3": {Threaded: true, Release: "9.10.3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stand(t, o)
			d := dumpThreads(t, s.Process.Pid)
			checkStandstill(t, s, d, o)
		})
	}
}

func checkStandstill(t *testing.T, s *standing, d dumped, o testprog.Options) {
	t.Helper()
	at := map[uint64]int{}
	for i, th := range d.Threads {
		at[th.ID] = i
		if th.Moved {
			t.Errorf("thread %d moved in a program that stands still", th.ID)
		}
		if th.State != "finished" && th.Stop != "root" {
			t.Errorf("the stack of thread %d (%s) ends by %s", th.ID, th.State, th.Stop)
		}
	}
	if len(at) != len(d.Threads) {
		t.Errorf("%d threads have %d ids", len(d.Threads), len(at))
	}
	for id, status := range s.status {
		i, ok := at[id]
		switch {
		case !ok && status != "ThreadFinished":
			t.Errorf("thread %d (%s) is not in the dump", id, status)
		case ok && id != s.main && !slices.Contains(statesOf(status), d.Threads[i].State):
			t.Errorf("thread %d is %s, the program says %s", id, d.Threads[i].State, status)
		}
	}
	for _, th := range d.Threads {
		if _, known := s.status[th.ID]; !known && len(s.status) > 0 && th.State != "finished" {
			t.Errorf("thread %d (%s) is not among those that the program lists", th.ID, th.State)
		}
	}
	foreign, delay := "foreign call", "mvar"
	if !o.Threaded {
		foreign, delay = "delay", "delay"
	}
	waits := map[string]string{} // by label: what it waits for
	for label, want := range map[string]string{
		"holder": foreign, "waiter 1": "mvar", "waiter 2": "mvar", "waiter 3": "mvar", "left first": "mvar", "right first": "mvar",
		"putter": "mvar", "reader": "mvar read", "evaluator": "mvar", "forcer 1": "black hole", "forcer 2": "black hole",
		"transaction": "stm", "deaf": "mvar read", "thrower": "throwTo", "sleeper": delay,
	} {
		for _, id := range s.ids[label] {
			i, ok := at[id]
			if !ok {
				t.Fatalf("thread %d %q is not in the dump", id, label)
			}
			th := &d.Threads[i]
			if th.State != want {
				t.Errorf("%q is %s, want %s", label, th.State, want)
			}
			if o.Release != "" && th.Label != label {
				t.Errorf("thread %d has the label %q, want %q", id, th.Label, label)
			}
			waits[label] = th.BlockedOn
		}
	}
	same := func(labels ...string) {
		t.Helper()
		for _, l := range labels[1:] {
			if waits[l] != waits[labels[0]] || waits[l] == "" {
				t.Errorf("%q waits for %q, %q for %q: want one and the same", labels[0], waits[labels[0]], l, waits[l])
			}
		}
	}
	same("waiter 1", "waiter 2", "waiter 3")
	for _, q := range d.Queues {
		switch e := q.Evaluates; {
		case q.Object != waits["forcer 1"] && e != nil:
			t.Errorf("%s is computed by %+v", q.Object, *e)
		case q.Object == waits["forcer 1"] && e == nil:
			t.Error("it is not known what computes the value of the thunk")
		case q.Object == waits["forcer 1"] && !o.Strip && !o.Prof && (filepath.Base(e.File) != "Main.hs" || e.Line < s.thunk || e.Line > s.thunk+1):
			t.Errorf("the value of the thunk of line %d is computed by %+v", s.thunk, *e)
		}
	}
	same("reader", "deaf")
	same("forcer 1", "forcer 2")
	var distinct []string
	for _, l := range []string{"waiter 1", "left first", "right first", "putter", "reader", "evaluator", "forcer 1"} {
		distinct = append(distinct, waits[l])
	}
	slices.Sort(distinct)
	if n := len(slices.Compact(slices.Clone(distinct))); n != len(distinct) {
		t.Errorf("different objects have one address: %q", distinct)
	}
	if want := "2 TVars "; !strings.HasPrefix(waits["transaction"], want) {
		t.Errorf("the transaction waits for %q, want %q", waits["transaction"], want)
	}
	edges := map[string]string{"left first": "right first", "right first": "left first", "forcer 1": "evaluator", "forcer 2": "evaluator", "thrower": "deaf",
		"waiter 1": "holder", "waiter 3": "holder"}
	for from, to := range edges {
		if got, want := d.Threads[at[s.ids[from][0]]].WaitsFor, s.ids[to]; !slices.Equal(got, want) {
			t.Errorf("%q waits for the threads %v, want %v, %q", from, got, want, to)
		}
	}
	want := []uint64{s.ids["left first"][0], s.ids["right first"][0]}
	if len(d.Deadlocks) != 1 || !slices.Equal(d.Deadlocks[0], want) {
		t.Errorf("deadlocks %v, want %v alone", d.Deadlocks, want)
	}
	if holder := s.ids["holder"]; o.Threaded && !o.Strip && len(holder) > 0 && d.Threads[at[holder[0]]].OSThread == 0 {
		t.Error("the OS thread of a foreign call is not known")
	}
}
