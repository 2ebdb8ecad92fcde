package e2e

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// spoilt copies a program with some of what is not loaded overwritten: debug information, symbols, their names, and the table
// of sections but for where they lie.
func spoilt(t *testing.T, from, to string, seed uint64) string {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 || s.Type == elf.SHT_NULL || s.FileSize == 0 || s.Name == ".comment" || s.Name == ".shstrtab" {
			continue
		}
		for range 1 + s.FileSize/200 {
			data[s.Offset+r.Uint64N(s.FileSize)] = byte(r.Uint64N(256))
		}
	}
	return written(t, to, data)
}

// written writes a program that everyone may execute.
func written(t *testing.T, path string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// unimportant starts a program of nobody's with the least priority, so that others have the CPU when they want it.
func unimportant(t *testing.T, env []string, exe string, args ...string) int {
	t.Helper()
	cmd := exec.Command(exe, args...)
	cmd.Dir, cmd.Env = "/", append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if err := unix.Setpriority(unix.PRIO_PROCESS, cmd.Process.Pid, 19); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// Programs that lie about themselves do nothing to what the daemon measures of an honest one: their counters jump, they have threads,
// blocks and stacks in circles, as many capabilities as a number can say, labels and names that a terminal would obey, debug
// information and symbols of garbage, another program's build id; they map code without end, and execute without end. The honest
// program is found, has the shares that it was written to have, and no time that it has not used, and the daemon answers and ends, in the
// memory that its unit allows.
func TestDaemonAmongLiars(t *testing.T) {
	testprog.NeedRoot(t)
	honest, liar := testprog.Build(t, "spin31", testprog.Options{}), readable(t, testprog.Build(t, "pretends", testprog.Options{}))
	dir := sharedDir(t, 0o755)
	data, err := os.ReadFile(honest)
	if err != nil {
		t.Fatal(err)
	}
	named := written(t, filepath.Join(dir, owned), data)
	// Names are found in a program's sources too, which are the honest program's, by the name of their file.
	impostor := written(t, filepath.Join(dir, "impostor"), bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("three"), []byte("liars")), []byte("Main.hs"), []byte("Liar.hs")))
	programs := []string{honest, liar, impostor, filepath.Join(dir, "*")}

	h := newHost(t)
	h.memory = unitMemory(t)
	at := freeAddress(t)
	h.more = "  events: [cpu-clock, alloc, gc, threads, blocked]\n  heap: 2s\n  metrics: " + at + "\n"
	rules := ""
	for _, p := range programs {
		rules += "  - {executable: '" + p + "', profile: true}\n"
	}
	h.configure(rules + "  - {profile: false}\n")
	h.start()

	pids := map[string]int{}
	for _, mode := range []string{"counters", "capabilities", "stacks", "structures", "execs", "labels", "mappings", "maps"} {
		pids[mode] = unimportant(t, nil, liar, mode, "+RTS", "-V0")
	}
	files := []string{"files"}
	for i := range 300 {
		files = append(files, written(t, filepath.Join(dir, fmt.Sprint("libHSrts-ghc9.0.2.so.", i)), data[:64<<(i%10)]))
	}
	pids["files"] = unimportant(t, nil, liar, append(files, "+RTS", "-V0")...)
	for seed := range uint64(4) {
		unimportant(t, nil, spoilt(t, honest, filepath.Join(dir, fmt.Sprint("spoilt", seed)), seed), forever)
	}
	unimportant(t, []string{"OTEL_SERVICE_NAME=" + owned, "OTEL_RESOURCE_ATTRIBUTES=" + owned + "=" + owned}, named, forever, owned)
	impostorPID := unimportant(t, nil, impostor, forever)
	eventually(t, "the impostor has a closed piece", func() bool { return len(h.closed(impostorPID, 1)) > 0 })

	// It starts among them.
	truth := runOn(t, nil, honest, forever).Process.Pid
	const enough = 300
	eventually(t, "the honest program has its samples", func() bool { return h.ps(0)[truth].Samples > enough })
	for _, mode := range []string{"structures", "stacks", "capabilities"} {
		for _, what := range []string{"threads", "heap"} {
			// Whatever it makes of them, it ends.
			run(t, command(t, ccagent, what, "--daemon", fmt.Sprint(pids[mode]), "--wait", "1s", "--socket", h.socket))
		}
	}
	for _, mode := range []string{"counters", "capabilities", "stacks", "structures", "labels", "mappings", "maps", "files"} {
		if p := h.ps(0)[pids[mode]]; p.State != "sampled" {
			t.Errorf("the program of %s is %+v", mode, p)
		}
	}
	r := run(t, command(t, ccagent, "ps", "--socket", h.socket))
	wantPrintable(t, "ps", r.stdout+r.stderr)
	r = run(t, command(t, ccview, "ls", h.state))
	wantPrintable(t, "ccview ls", r.stdout+r.stderr)
	metrics := get(t, "http://"+at+"/metrics")
	if !utf8.ValidString(metrics) || strings.Contains(metrics, "\nccagent: all is well") {
		t.Errorf("a program's name has metrics of its own: %.2000q", metrics)
	}
	cpu := 0.0
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "ccagent_haskell_cpu_seconds_total{") && strings.Contains(line, `service="spin31"`) {
			cpu += sums(line, "ccagent_haskell_cpu_seconds_total")
		}
	}
	if most := cpuSeconds(t, truth) + 0.05; cpu <= 0 || cpu > most {
		t.Errorf("the honest program has %v s of CPU time by the metrics, and has used %v", cpu, most)
	}

	// All that was closed of it by now.
	three, one := honestShares(t, h, truth)
	if n := three + one; n < enough/2 || math.Abs(three/n-0.75) > 4*math.Sqrt(0.75*0.25/n) {
		t.Errorf("Main.three has %.0f samples and Main.one %.0f, want 3 : 1", three, one)
	}
	if lies, _ := honestShares(t, h, impostorPID); lies != 0 {
		t.Errorf("the impostor has %v samples in Main.three, which is the honest program's", lies)
	}

	h.daemon.Process.Signal(unix.SIGTERM)
	if r := h.ended(); r.status != 0 || strings.Contains(r.stderr, "killed") {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	} else {
		wantPrintable(t, "the daemon", r.stderr)
	}
}

// honestShares are the samples of Main.three and Main.one in what is closed of a process, which has no other names but its own.
func honestShares(t *testing.T, h *host, pid int) (three, one float64) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "snapshot.eventlog")
	if r := run(t, command(t, ccagent, "snapshot", fmt.Sprint(pid), "--last", "1h", "-o", log, "--socket", h.socket)); r.status != 0 {
		t.Fatalf("snapshot: %s", r.stderr)
	}
	r := run(t, command(t, ccview, "hot", "--top", "0", "--format", "json", log))
	var hot struct {
		Rows []struct {
			Element string
			Samples float64
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &hot); err != nil || r.status != 0 {
		t.Fatalf("hot: %v\n%s", err, r.stderr)
	}
	lies := 0.0
	for _, row := range hot.Rows {
		switch row.Element {
		case "Main.three":
			three += row.Samples
		case "Main.one":
			one += row.Samples
		case "Main.liars":
			lies += row.Samples
		}
	}
	if three > 0 && lies > 0 {
		t.Errorf("process %d has %v samples in Main.liars, which is another program's", pid, lies)
	}
	return three, one
}
