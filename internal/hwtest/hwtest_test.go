package hwtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"ccagent/internal/hwtest"
	"ccagent/internal/testprog"
)

// limit stops a machine that hangs; no test waits for it. The longest test takes four
// minutes on two CPUs of its own.
const limit = 30 * time.Minute

// jobSeconds stops a command that hangs in a guest, before the machine is stopped.
const jobSeconds = 1500

// fetched returns the folder that scripts/hwtest has filled. The test is skipped without it.
func fetched(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("CCAGENT_HWTEST")
	if dir == "" {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "other kernels", Hint: "run scripts/hwtest"})
	}
	return dir
}

// kernel returns a kernel that scripts/hwtest has fetched, such as "amd64-6.1". The test is
// skipped if it could not be fetched.
func kernel(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(fetched(t), name)
	found, err := filepath.Glob(filepath.Join(dir, "boot", "vmlinu[xz]-*"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".complete")); err != nil || len(found) != 1 {
		unavailable(t, name, "Debian's kernel "+name)
	}
	return found[0]
}

// unavailable skips the test with the reason recorded by scripts/hwtest.
func unavailable(t *testing.T, name, need string) {
	t.Helper()
	why, err := os.ReadFile(filepath.Join(fetched(t), name+".why"))
	if err != nil {
		t.Fatalf("%s is not there, and scripts/hwtest does not say why: %v", need, err)
	}
	testprog.Skip(t, &testprog.UnsupportedError{Need: need, Hint: strings.TrimSpace(string(why))})
}

// goBuild builds a package of this module for an architecture.
func goBuild(t *testing.T, arch string, args ...string) hwtest.File {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command("go", append([]string{args[0], "-o", out}, args[1:]...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, text)
	}
	return read(t, out)
}

func read(t *testing.T, path string) hwtest.File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return hwtest.File{Data: data, Mode: 0o755}
}

// agentFiles are what every guest holds: the real ccagent, and the walker's own test.
func agentFiles(t *testing.T, arch string) hwtest.Initramfs {
	t.Helper()
	return hwtest.Initramfs{
		hwtest.Guest:   goBuild(t, arch, "build", "ccagent/internal/hwtest/guest"),
		"/bin/ccagent": goBuild(t, arch, "build", "ccagent/cmd/ccagent"),
		"/bin/bpf":     goBuild(t, arch, "test", "-c", "ccagent/bpf"),
	}
}

// skipWithoutQEMU skips the test where a machine's error says that it could not be started.
func skipWithoutQEMU(t *testing.T, arch string, err error) {
	t.Helper()
	if errors.Is(err, exec.ErrNotFound) {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "QEMU for " + arch, Hint: "apt-get install qemu-system-x86 qemu-system-arm"})
	}
}

// boot runs the jobs on the machine and gives their results by name.
func boot(t *testing.T, m hwtest.Machine, files hwtest.Initramfs, jobs []hwtest.Job) map[string]hwtest.Result {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, fmt.Errorf("it took longer than %v", limit))
	defer cancel()
	begun := time.Now()
	results, console, err := m.Run(ctx, files, jobs)
	skipWithoutQEMU(t, m.Arch, err)
	byName := map[string]hwtest.Result{}
	for _, r := range results {
		t.Logf("%s: status %d in %.1f s", r.Name, r.Status, r.Seconds)
		if err != nil || r.Status != 0 {
			t.Log(r.Stdout, r.Stderr)
		}
		byName[r.Name] = r
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, console)
	}
	if strings.Contains(console, "Kernel panic") {
		t.Logf("the kernel went down, and was booted again:\n%s", console)
	}
	t.Logf("the machine ran for %.0f s", time.Since(begun).Seconds())
	return byName
}

// verify is the job that runs the test of the verifier's counts.
var verify = hwtest.Job{Name: "verifier", Argv: []string{"/bin/bpf", "-test.v", "-test.run", "^TestVerifierCost$"}, Seconds: jobSeconds}

var doctor = hwtest.Job{Name: "doctor", Argv: []string{"/bin/ccagent", "doctor"}, Seconds: jobSeconds}

// record is the job that profiles a program; the log is its only file.
func record(name string, flags []string, program ...string) hwtest.Job {
	log := "/tmp/" + name + ".eventlog"
	// No budget is kept in an emulated machine, because it walks stacks a hundred times
	// slower.
	argv := append([]string{"/bin/ccagent", "record", "--max-overhead", "0", "-o", log}, flags...)
	return hwtest.Job{
		Name: name, Argv: append(append(argv, "--"), program...),
		Files: []string{log}, Seconds: jobSeconds,
	}
}

// logOf stores the log that a record job has produced.
func logOf(t *testing.T, r hwtest.Result) string {
	t.Helper()
	if r.Status != 0 {
		t.Fatalf("%s: status %d\n%s%s", r.Name, r.Status, r.Stdout, r.Stderr)
	}
	for name, data := range r.Files {
		path := filepath.Join(t.TempDir(), filepath.Base(name))
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Fatalf("%s left no log\n%s", r.Name, r.Stderr)
	return ""
}

var counted = regexp.MustCompile(`Linux .* the verifier processes \d+`)

func logVerifier(t *testing.T, r hwtest.Result) {
	t.Helper()
	lines := counted.FindAllString(r.Stdout, -1)
	if r.Status != 0 || len(lines) == 0 {
		t.Errorf("the walker's test: status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	for _, line := range lines {
		t.Log(line)
	}
}

// ccview is built once.
var ccview = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "ccagent-hwtest-")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", dir+"/", "ccagent/cmd/ccview").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return filepath.Join(dir, "ccview"), err
})

// view runs ccview with --format json and decodes what it prints.
func view(t *testing.T, into any, args ...string) {
	t.Helper()
	if err := tryView(into, args...); err != nil {
		t.Fatal(err)
	}
}

func tryView(into any, args ...string) error {
	exe, err := ccview()
	if err != nil {
		return fmt.Errorf("build ccview: %w", err)
	}
	out, err := exec.Command(exe, append(args, "--format", "json")...).Output()
	if err != nil {
		return fmt.Errorf("ccview %v: %w", args, err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("ccview %v: %w in\n%.2000s", args, err, out)
	}
	return nil
}
