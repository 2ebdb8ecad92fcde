package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// crowd starts the program of that name, of so many threads that wait, and returns its process id.
func crowd(t *testing.T, o testprog.Options, threads, depth int, mode string) (pid int) {
	t.Helper()
	cmd := command(t, testprog.Build(t, "crowd", o), fmt.Sprint(threads), fmt.Sprint(depth), mode, "+RTS", "-N2")
	in, out := testprog.Start(t, cmd)
	t.Cleanup(func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // the end of the test kills it
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != fmt.Sprintf("ready %d\n", threads) {
		t.Fatalf("the program says %q (%v)", line, err)
	}
	return cmd.Process.Pid
}

// A dump of many threads has each with its whole stack while another runs, and whatever that does; the OS thread that runs it
// is stopped for a part of the time that reading takes.
func TestThreadsOfACrowd(t *testing.T) {
	testprog.NeedRoot(t)
	const threads, depth = 10000, 8
	for _, mode := range []string{"spin", "alloc", "fork"} {
		t.Run(mode, func(t *testing.T) {
			pid := crowd(t, testprog.Options{Threaded: true}, threads, depth, mode)
			least := math.Inf(1)
			for range 3 {
				d := dumpThreads(t, pid)
				least = min(least, d.Pause/d.Seconds)
				checkCrowd(t, d, threads, depth, mode)
			}
			// On a busy machine either may be longer than it would take by itself: of three, one is not.
			if least >= 1 {
				t.Errorf("the program was stopped for as long as reading took, or longer (%.2f of it)", least)
			}
		})
	}
}

// A dump of a program whose stacks grow and shrink, or that does little but collect, has all threads that wait, as they are; or
// says that there was no moment at which it could be read.
func TestThreadsOfARestlessCrowd(t *testing.T) {
	testprog.NeedRoot(t)
	const threads, depth = 400, 8
	for _, mode := range []string{"grow", "collect"} {
		for _, o := range []testprog.Options{{Threaded: true}, {Threaded: true, Strip: true}, {Release: "9.6.6", Threaded: true}} {
			t.Run(fmt.Sprint(mode, " ", o.Release, " stripped ", o.Strip), func(t *testing.T) {
				pid := crowd(t, o, threads, depth, mode)
				for range 2 {
					r := run(t, command(t, ccagent, "threads", "--format", "json", strconv.Itoa(pid)))
					if r.status != 0 && strings.Contains(r.stderr, "a collection ran at each attempt") {
						continue
					}
					var d dumped
					if err := json.Unmarshal([]byte(r.stdout), &d); r.status != 0 || err != nil {
						t.Fatalf("ccagent threads: exit status %d (%v)\n%s", r.status, err, r.stderr)
					}
					waits := map[uint64]int{} // by bytes of stack
					for _, th := range d.Threads {
						if th.State == "mvar" && th.Stop == "root" {
							waits[th.Used]++
						}
					}
					sizes := 0
					for _, n := range waits {
						if n >= threads/depth {
							sizes++
						}
					}
					if sizes != depth {
						t.Errorf("stacks have these sizes: %v; want %d of %d each", waits, threads/depth, depth)
					}
					if len(d.Deadlocks) > 0 {
						t.Errorf("deadlocks %v in a program without", d.Deadlocks)
					}
				}
			})
		}
	}
}

// checkCrowd checks that all threads are in a dump that wait in the program crowd, with their stacks.
func checkCrowd(t *testing.T, d dumped, threads, depth int, mode string) {
	t.Helper()
	of := map[uint64]int{} // threads, by bytes of stack: each frame of the recursion takes as many
	runs := 0
	for _, th := range d.Threads {
		if th.State == "running" {
			runs++
		}
		if th.State == "mvar" && th.Stop == "root" && slices.ContainsFunc(th.Stack, func(f frame) bool { return strings.HasPrefix(f.Name, "Main.stand") }) {
			of[th.Used]++
		}
	}
	if len(of) != depth {
		t.Errorf("there are stacks of %d sizes, want %d: %v", len(of), depth, of)
	}
	more := 0
	for used, got := range of {
		switch want := threads / depth; {
		case got < want:
			t.Errorf("%d threads have stacks of %d bytes, want %d", got, used, want)
		case got > want:
			more++
		}
	}
	// By "fork" it has more of one size, which come and go.
	if more > 0 && (mode != "fork" || more > 1) {
		t.Errorf("more than %d threads each have stacks of so many bytes: %v", threads/depth, of)
	}
	if mode != "fork" && runs != 1 {
		t.Errorf("%d threads run, want 1", runs)
	}
}
