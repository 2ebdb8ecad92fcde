package hwtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ccagent/agent/config"
	"ccagent/internal/hwtest"
	"ccagent/internal/testprog"
)

// matrixKernels are the kernels that the table of docs/kernels.md has a row for, the oldest first, by what scripts/hwtest calls them.
var matrixKernels = []string{"amd64-6.1", "amd64-6.12", "amd64-newest"}

// matrixColumns are the ways to measure that run on each kernel, which are names of jobs.
var matrixColumns = []string{"record", "attach", "tick", "alloc", "daemon"}

// row is what was seen on a kernel. One is stored in testdata/kernels for each.
type row struct {
	Release string            // of the kernel
	Seconds int               // from the machine's power-on to off
	Seen    map[string]string // by column
}

const (
	matrixFolder = "testdata/kernels"
	matrixDoc    = "../../docs/kernels.md"
	// The table is between these lines of matrixDoc.
	matrixBegin = "<!-- scripts/bench kernels -->\n"
	matrixEnd   = "<!-- end of scripts/bench kernels -->\n"
)

const (
	// matrixJob is after how many seconds a command is killed that hangs in a guest; the jobs after it run on. The longest takes a
	// tenth of that on a machine of its own.
	matrixJob = 240
	// matrixLimit stops a machine that hangs as a whole.
	matrixLimit = 20 * time.Minute
	// few are the samples that there must be. How many there are depends on the host: time is not counted.
	few = 30
)

const forever = "1000000000"

// forDaemon adds the files that ccagent's daemon needs: as with record, no budget is kept.
func forDaemon(files hwtest.Initramfs) {
	files[config.Path] = hwtest.File{Mode: 0o600, Data: []byte("daemon: {frequency: 499, max-overhead: 0, process-overhead: 0}\n")}
	files["/etc/passwd"] = hwtest.File{Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/bin/sh\n")}
	files["/etc/group"] = hwtest.File{Mode: 0o644, Data: []byte("root:x:0:\n")}
}

// attachJob attaches to the program rev, and daemonJob has the daemon profile it.
var (
	attachJob = hwtest.Job{Name: "attach", Seconds: jobSeconds, Files: []string{"/tmp/attach.eventlog"}, Argv: []string{
		hwtest.Guest, "while", "/bin/rev", "220", forever, "--",
		"/bin/ccagent", "attach", "--max-overhead", "0", "--duration", "3s", "-e", "cpu-clock", "-F", "499", "-o", "/tmp/attach.eventlog", "PID",
	}}
	daemonJob = hwtest.Job{Name: "daemon", Seconds: jobSeconds, Files: []string{"/tmp/daemon.eventlog"}, Argv: []string{
		hwtest.Guest, "daemon", "300", "/tmp/daemon.eventlog", "/bin/rev", "220", forever,
	}}
)

// TestKernelMatrix boots kernels of Debian's archives, measures in each way there is on each of them, and stores what was seen.
//
// The machines have two CPUs and the host's clock, as those have that people use. With one CPU and a clock of counted
// instructions (Machine.Counted) what waits for a second beside a program that computes takes minutes.
func TestKernelMatrix(t *testing.T) {
	if os.Getenv("CCAGENT_MATRIX") == "" {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "minutes", Hint: "scripts/bench kernels"})
	}
	files := agentFiles(t, "amd64")
	delete(files, "/bin/bpf")
	static := testprog.Options{Flags: []string{"-optl-static"}}
	files["/bin/rev"] = read(t, testprog.Build(t, "rev", static))
	files["/bin/alloc31"] = read(t, testprog.Build(t, "alloc31", static))
	forDaemon(files)
	jobs := []hwtest.Job{
		doctor,
		record("record", []string{"-e", "cpu-clock", "-F", "499"}, "/bin/rev", "220", "60"),
		attachJob,
		record("tick", []string{"-e", "tick"}, "/bin/rev", "220", "120"),
		record("alloc", []string{"-e", "alloc"}, "/bin/alloc31", "500", "+RTS", "-s"),
		daemonJob,
	}
	for i := range jobs {
		jobs[i].Seconds = matrixJob
	}
	for _, name := range matrixKernels {
		t.Run(name, func(t *testing.T) {
			r := bootRow(t, hwtest.Machine{Arch: "amd64", Kernel: kernel(t, name), CPUs: 2}, files, jobs)
			data, err := json.MarshalIndent(r, "", "\t")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(matrixFolder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(matrixFolder, name+".json"), append(data, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

var release = regexp.MustCompile(`Linux (\S+) on`)

// bootRow runs the jobs on a machine, and says what was seen of each; of one that fails or hangs that too.
func bootRow(t *testing.T, m hwtest.Machine, files hwtest.Initramfs, jobs []hwtest.Job) row {
	ctx, cancel := context.WithTimeoutCause(t.Context(), matrixLimit, fmt.Errorf("it took longer than %v", matrixLimit))
	defer cancel()
	begun := time.Now()
	results, console, err := m.Run(ctx, files, jobs)
	skipWithoutQEMU(t, m.Arch, err)
	r := row{Seconds: int(time.Since(begun).Seconds()), Seen: map[string]string{}}
	if err != nil {
		t.Errorf("%v\n%s", err, console)
	}
	done := map[string]hwtest.Result{}
	for _, d := range results {
		t.Logf("%s: status %d in %.1f s\n%s%s", d.Name, d.Status, d.Seconds, d.Stdout, d.Stderr)
		done[d.Name] = d
	}
	found := release.FindStringSubmatch(done["doctor"].Stdout)
	if found == nil {
		t.Fatalf("doctor names no kernel:\n%s%s", done["doctor"].Stdout, done["doctor"].Stderr)
	}
	r.Release = found[1]
	wantLine(t, done["doctor"].Stdout, "ok", "the kernel takes the stack walker")
	for _, column := range matrixColumns {
		d, ran := done[column]
		if !ran {
			r.Seen[column] = "the machine hangs"
			continue
		}
		if !t.Run(column, func(t *testing.T) { r.Seen[column] = seen(t, d) }) {
			r.Seen[column] = failed(d)
		}
	}
	return r
}

// seen checks what a job has left, and says what was seen.
func seen(t *testing.T, r hwtest.Result) string {
	t.Helper()
	switch r.Name {
	case "alloc":
		bytes, want := wantAllocation(t, r)
		return fmt.Sprintf("%.2f %% of the bytes", 100*bytes/want)
	case "tick":
		return fmt.Sprintf("%.0f samples", wantRev(t, logOf(t, r), "tick", few))
	case "daemon":
		return wantPiece(t, r)
	}
	return fmt.Sprintf("%.0f samples", wantRev(t, logOf(t, r), "cpu-clock", few))
}

// wantPiece checks the piece that the daemon has left of rev, and that ps says that the process is sampled, with all events.
func wantPiece(t *testing.T, r hwtest.Result) string {
	t.Helper()
	samples := wantRev(t, logOf(t, r), "cpu-clock", few)
	var ps struct {
		State   string
		Samples int
		Events  []string
		Missing []struct{ Event, Reason string }
	}
	// It is the first that the helper prints.
	if err := json.NewDecoder(strings.NewReader(r.Stdout)).Decode(&ps); err != nil {
		t.Fatalf("%v in %q", err, r.Stdout)
	}
	if ps.State != "sampled" || !slices.Equal(ps.Events, []string{"cpu-clock", "alloc", "gc"}) || len(ps.Missing) > 0 {
		t.Errorf("ps says %+v", ps)
	}
	return fmt.Sprintf("`ps`: %s; %.0f samples in a piece", ps.State, samples)
}

// failed is what the table says of a job that has failed.
func failed(r hwtest.Result) string {
	if r.Status == 0 {
		return "**wrong**"
	}
	lines := strings.Split(strings.TrimSpace(r.Stderr), "\n")
	return fmt.Sprintf("**fails**: status %d, %.120q", r.Status, lines[len(lines)-1])
}

// TestKernelTable checks that the table in docs/kernels.md is what the stored rows give; with CCAGENT_MATRIX it writes it.
func TestKernelTable(t *testing.T) {
	var table strings.Builder
	fmt.Fprintf(&table, "\n| Kernel | %s | Seconds |\n|---%s|--:|\n", strings.Join(matrixColumns, " | "), strings.Repeat("|---", len(matrixColumns)))
	for _, name := range matrixKernels {
		data, err := os.ReadFile(filepath.Join(matrixFolder, name+".json"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var r row
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		cells := []string{r.Release}
		for _, column := range matrixColumns {
			cells = append(cells, strings.ReplaceAll(r.Seen[column], "|", `\|`))
		}
		fmt.Fprintf(&table, "| %s | %d |\n", strings.Join(cells, " | "), r.Seconds)
	}
	table.WriteString("\n")
	text, err := os.ReadFile(matrixDoc)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := bytes.Cut(text, []byte(matrixBegin))
	old, tail, ends := bytes.Cut(rest, []byte(matrixEnd))
	if !begins || !ends {
		t.Fatalf("%s lacks the lines %q and %q", matrixDoc, matrixBegin, matrixEnd)
	}
	if string(old) == table.String() {
		return
	}
	if os.Getenv("CCAGENT_MATRIX") == "" {
		t.Fatalf("the table in %s is not what %s gives (scripts/bench kernels table writes it):\n%s", matrixDoc, matrixFolder, table.String())
	}
	written := bytes.Join([][]byte{head, []byte(matrixBegin), []byte(table.String()), []byte(matrixEnd), tail}, nil)
	if err := os.WriteFile(matrixDoc, written, 0o644); err != nil {
		t.Fatal(err)
	}
}
