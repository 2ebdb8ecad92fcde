package hwtest_test

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/hwtest"
	"ccagent/internal/testprog"
)

// Hardware counters overflow and interrupt on arm64, and the Haskell stack is walked from
// its STG registers x19 and x20; there are as many samples as the count has periods.
//
// The machine's time is a function of the executed instructions, so a slow or busy host
// changes nothing; but address-space randomisation and Go's scheduler make each run differ.
func TestHardwareCounters(t *testing.T) {
	image := kernel(t, "arm64-6.1")
	ghc := ghcForArm64(t)
	files := agentFiles(t, "arm64")
	files["/bin/rev"] = read(t, testprog.Build(t, "rev", testprog.Options{GHC: ghc, Flags: []string{"-optl-static", "-finfo-table-map"}}))

	// In the emulator an instruction takes 2 ns and a cycle 1 ns. The kernel's tick is 4 ms:
	// the golden section keeps overflows from falling into step with it.
	const period, often = 1_236_067, "618033"
	count := func(name, event, number string) hwtest.Job {
		return record(name, []string{"-e", event, "-c", fmt.Sprint(period)},
			// Without a ticker there is one thread, which is seldom switched out.
			hwtest.Guest, "count", number, "/bin/rev", "220", "20", "+RTS", "-V0")
	}
	machine := hwtest.Machine{Arch: "arm64", Kernel: image, Counted: true}
	done := boot(t, machine, files, []hwtest.Job{
		doctor, verify,
		record("rev", []string{"-e", "cycles", "-c", often}, "/bin/rev", "220", "30"),
		count("cycles", "cycles", "0"),
		count("instructions", "instructions", "1"),
		record("missing", []string{"-e", "cache-misses", "-c", "1000"}, "/bin/rev"),
		// At a period two events on a CPU would stay in step: an instruction takes two cycles. At a
		// frequency they do for a while, and one overflows in the other's interrupt.
		record("ratio", []string{"-e", "cycles,instructions", "-F", "3989", "--max-overhead", "0"}, "/bin/rev", "220", "60"),
		record("precise", []string{"-e", "cycles:pp", "-c", often}, "/bin/rev", "220", "10"),
		record("turns", []string{"-e", manyEvents, "-c", often}, "/bin/rev", "220", "60"),
		hogged(record("taken", []string{"-e", "cycles,cpu-clock", "-F", "499"}, "/bin/rev", "220", "10")),
	})
	logVerifier(t, done["verifier"])
	wantLine(t, done["doctor"].Stdout, "ok", "the CPU's counters can be sampled")
	wantRev(t, logOf(t, done["rev"]), "cycles", enough)
	totals := map[string]float64{}
	for _, event := range []string{"cycles", "instructions"} {
		r := done[event]
		log, pid, total, switches := countedBy(t, r)
		// In two of eleven runs with QEMU 7.2 the counter of instructions overflowed once at the most and never again, that of cycles
		// in none. It is presumed, and was not proven, to be the emulator's fault. Of such a run there is nothing to compare; others take
		// its place.
		for tries := 0; event == "instructions" && tries < 4 && stopped(t, log, total/period); tries++ {
			t.Log("the emulator's counter has stopped; counting again")
			again := boot(t, machine, files, []hwtest.Job{count("1", event, "1"), count("2", event, "1"), count("3", event, "1")})
			for _, r := range again {
				if log, pid, total, switches = countedBy(t, r); !stopped(t, log, total/period) {
					break
				}
			}
		}
		totals[event] = total
		// The event is open on the CPU, so that each stretch of the program there begins and ends
		// within a period: one overflow more or less. The count begins at exec and the samples
		// at fork.
		var info infoJSON
		if view(t, &info, "info", log); info.Events[0].Sampling.Method != "per-cpu" {
			t.Errorf("%s is sampled %q", event, info.Events[0].Sampling.Method)
		}
		n, others := samplesOf(t, log, pid)
		t.Logf("%s: %d samples and %d of other processes, count/period = %.2f, %.0f switches", event, n, others, total/period, switches)
		if diff := float64(n) - total/period; diff < -2-2*switches || diff > 4+2*switches || switches > 20 {
			t.Errorf("%s: %d samples of %.0f counts, a period is %d; switched out %.0f times", event, n, total, period, switches)
		}
	}
	missing := done["missing"]
	if missing.Status != 125 || len(missing.Files) != 0 {
		t.Errorf("cache-misses: status %d, %d files", missing.Status, len(missing.Files))
	}
	wantLine(t, missing.Stderr, "cache-misses", "not available", "cycles")
	wantRatio(t, logOf(t, done["ratio"]))
	wantTurns(t, done["turns"], logOf(t, done["turns"]), totals)
	logOf(t, done["precise"])
	wantLine(t, done["precise"].Stderr, "cycles:pp (cycles): ", "level 0 of 3")
	logOf(t, done["taken"])
	wantLine(t, done["taken"].Stderr, "cycles: never on a counter", "others have taken them all")
}

// manyEvents are more than there are counters; all of them are counted.
const manyEvents = "cycles,instructions,cycles:u,instructions:u,r08,r08:u,r11,r11:u,r11:k,r08:k"

func hogged(j hwtest.Job) hwtest.Job {
	j.Argv = append([]string{hwtest.Guest, "hog"}, j.Argv...)
	return j
}

// sigmas is the distance from its mean that a normal value exceeds once in a million.
const sigmas = 4.9

// wantRatio checks instructions per cycle: in the emulator every instruction takes two
// cycles.
func wantRatio(t *testing.T, log string) {
	t.Helper()
	var hot struct {
		Rows []struct {
			Element string
			Ratios  struct{ IPC float64 }
		}
	}
	view(t, &hot, "hot", log, "--event", "cycles", "--level", "binding")
	for _, r := range hot.Rows {
		if r.Element == "Main.rev" {
			t.Logf("Main.rev: %.3f instructions per cycle", r.Ratios.IPC)
			if r.Ratios.IPC < 0.3 || r.Ratios.IPC > 0.7 {
				t.Errorf("Main.rev: %.3f instructions per cycle", r.Ratios.IPC)
			}
			return
		}
	}
	t.Errorf("%s: Main.rev is not there: %+v", log, hot.Rows)
}

// wantTurns checks that the counts of events that took turns are scaled, and that this is
// reported. totals are those of a third of the program's rounds. The variance of a weight
// that is the sum of n samples is that of n independent ones, or less.
func wantTurns(t *testing.T, r hwtest.Result, log string, totals map[string]float64) {
	t.Helper()
	wantLine(t, r.Stderr, "fewer counters than events", "scaled")
	var info infoJSON
	view(t, &info, "info", log)
	weight, samples := map[string]float64{}, map[string]float64{}
	for _, e := range info.Events {
		t.Logf("%s: %v samples, weight %v", e.Name, e.Samples, e.Weight)
		weight[e.Name], samples[e.Name] = e.Weight, e.Samples
	}
	for name, code := range map[string]string{"cycles": "r11", "instructions": "r08"} {
		for _, event := range []string{name, code} {
			of, bound := weight[event]/(3*totals[name]), sigmas/math.Sqrt(samples[event])
			if math.Abs(of-1) > bound || samples[event] < 100 {
				t.Errorf("%s: a weight of %.0f in %.0f samples is %.2f of what was counted", event, weight[event], samples[event], of)
			}
		}
	}
}

// countedBy gives the log of a job that counts, the process that was counted, its count and how often it was switched out.
func countedBy(t *testing.T, r hwtest.Result) (log string, pid uint32, total, switches float64) {
	t.Helper()
	log = logOf(t, r)
	var answer uint32
	if _, err := fmt.Sscanf(r.Stdout, "%d\ncounted %d %g %g", &answer, &pid, &total, &switches); err != nil {
		t.Fatalf("%s: %v in %q", r.Name, err, r.Stdout)
	}
	return log, pid, total, switches
}

// stopped reports whether a log of so many periods has next to no sample of any process.
func stopped(t *testing.T, log string, periods float64) bool {
	t.Helper()
	n, others := samplesOf(t, log, 0)
	return periods > 20 && n+others <= 2
}

// samplesOf counts a process's samples, and those of others.
func samplesOf(t *testing.T, log string, pid uint32) (n, others int) {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := eventlog.NewReader(bufio.NewReader(f))
	for r.Next() {
		if s, ok := r.Record().Event.(*eventlog.Sample); ok {
			if s.PID == pid {
				n++
			} else {
				others++
			}
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return n, others
}
