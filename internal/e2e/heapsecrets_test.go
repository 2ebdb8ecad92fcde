package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ccagent/internal/testprog"
)

// What a program keeps in strings, numbers and byte arrays is neither in the log of a census with pointers, nor in the
// agent's cache, nor in a core dump of an agent that has the heap's copy.
func TestSecretsOfAHeap(t *testing.T) {
	testprog.NeedRoot(t)
	const secret = "correcthorsebatterystaple"
	target := command(t, testprog.Build(t, "retain", testprog.Options{Threaded: true}), "4000", "100", "rest", secret)
	in, out := io.Pipe()
	target.Stdout = out
	stdin, err := target.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	background(t, target)
	lines := bufio.NewReader(in)
	if line, err := lines.ReadString('\n'); line != "at rest\n" {
		t.Fatalf("it says %q, %v", line, err)
	}
	go io.Copy(io.Discard, lines)
	if _, err := io.WriteString(stdin, "\n"); err != nil {
		t.Fatal(err)
	}
	// The program has it in a number, too, from the end to the beginning. What it has as an argument, the agent has read.
	backwards := []byte(secret)
	slices.Reverse(backwards)
	dir := t.TempDir()
	lacks := func(texts ...[]byte) (files int) {
		t.Helper()
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			for _, s := range texts {
				if err == nil && bytes.Contains(text, s) {
					t.Errorf("%s has what the program keeps secret: %q", path, s)
				}
			}
			files++
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	log := filepath.Join(dir, "heap.eventlog")
	census := []string{"heap", "--graph", "--max-pause", "0", "--wait", "1m", "--no-args", "-o", log, pidOf(target)}
	agent := command(t, ccagent, census...)
	agent.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
	if r := run(t, agent); r.status != 0 {
		t.Fatalf("status %d\n%s", r.status, r.stderr)
	}
	if lacks(backwards[:8], []byte(secret[:8])) == 0 {
		t.Error("it has written nothing")
	}
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(string(pattern), "|/") {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "core dumps in the current folder", Hint: "sysctl kernel.core_pattern=core"})
	}
	copied := false
	for tries := 0; !copied; tries++ {
		if tries == 20 {
			t.Fatal("no agent was stopped while it had a copy of the heap")
		}
		dumped := command(t, "/bin/sh", append([]string{"-c", `ulimit -c unlimited && exec "$0" "$@"`, ccagent}, census...)...)
		dumped.Env, dumped.Dir = append(os.Environ(), "GOTRACEBACK=crash"), dir
		wait := background(t, dumped)
		copied = stopWith(t, dumped.Process, backwards[:8])
		if err := errors.Join(dumped.Process.Signal(syscall.SIGABRT), dumped.Process.Signal(syscall.SIGCONT)); err != nil && copied {
			t.Fatal(err)
		}
		wait()
	}
	cores, err := filepath.Glob(filepath.Join(dir, "core*"))
	if err != nil || len(cores) == 0 {
		t.Fatalf("there is no core dump, %v", err)
	}
	lacks(backwards[:8])
}

// stopWith stops an agent when its copy of a heap has a text; false if it has freed that copy before.
func stopWith(t *testing.T, agent *os.Process, text []byte) bool {
	t.Helper()
	mapped := false
	for {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", agent.Pid))
		if err != nil || len(maps) == 0 {
			return false
		}
		before, _, found := strings.Cut(string(maps), "memfd:heap")
		if !found && mapped {
			return false
		}
		if !found {
			continue
		}
		mapped = true
		var from, to int64
		if _, err := fmt.Sscanf(before[strings.LastIndexByte(before, '\n')+1:], "%x-%x", &from, &to); err != nil {
			t.Fatal(err)
		}
		if err := agent.Signal(syscall.SIGSTOP); err != nil {
			return false
		}
		memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", agent.Pid))
		if err != nil {
			return false
		}
		copied := make([]byte, to-from)
		n, _ := memory.ReadAt(copied, from) // nothing, if it was freed meanwhile
		memory.Close()
		if bytes.Contains(copied[:n], text) {
			return true
		}
		if err := agent.Signal(syscall.SIGCONT); err != nil {
			return false
		}
	}
}
