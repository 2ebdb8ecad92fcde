package doctor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/agent/sourcetest"
	"ccagent/internal/ghc"
	"ccagent/internal/testprog"
	"ccagent/symbolize/binary"
)

// Whether a heap can be counted is said of the program's file, and of what keeps a process from it.
func TestHeapCensus(t *testing.T) {
	for _, c := range []struct {
		options testprog.Options
		status  Status
		words   string
	}{
		{testprog.Options{}, OK, "major collections"},
		{testprog.Options{Strip: true}, Warning, "at rest alone"},
		{testprog.Options{Dynamic: true}, Warning, "/libHSrts"},
	} {
		checks, _ := examine(t, testprog.Build(t, "maps", c.options))
		if got := checks["heap census"]; got.Status != c.status || !strings.Contains(got.Detail, c.words) || (got.Fix == "") != (c.status == OK) {
			t.Errorf("%+v: %+v", c.options, got)
		}
	}
	exe := testprog.Build(t, "maps", testprog.Options{})
	processesCensus(t, exe)
}

// Of a process it is said by the library that the dynamic linker has found, which may have the symbols that the program's own lacks.
func TestHeapCensusOfSharedRTS(t *testing.T) {
	objcopy := testprog.NeedTool(t, "objcopy", "binutils")
	exe := testprog.Build(t, "maps", testprog.Options{Dynamic: true})
	f, err := os.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	elf, err := openELF(f)
	if err != nil {
		t.Fatal(err)
	}
	b := binary.IdentifyFile(elf)
	lib, path := b.SharedRTS(exe)
	if path == "" {
		t.Fatalf("%q is not found", lib)
	}
	dir := t.TempDir()
	named := filepath.Join(dir, lib)
	args := []string{path, named}
	for name, where := range map[string]string{ // what one that is not stripped has
		ghc.SymGarbageCollect: ".text:0x100,function,local", ghc.SymResurrect: ".text:0x200,function,local",
		ghc.SymGenerations: ".bss:0,object", ghc.SymOldestGeneration: ".bss:8,object",
	} {
		args = append([]string{"--add-symbol", name + "=" + where}, args...)
	}
	if out, err := exec.Command(objcopy, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, folder := range []string{"", dir} {
		cmd := exec.Command(exe, "20000", "1000000")
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+folder)
		_, _ = testprog.Start(t, cmd)
		sourcetest.Until(t, "it has loaded its run-time system", func() bool {
			_, is := loadedRTS(cmd.Process.Pid)
			return is
		})
		checks, err := Program(exe, func([]string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		var got Check
		for _, c := range Process(cmd.Process.Pid, checks) {
			if c.Name == heapCensusName {
				got = c
			}
		}
		if folder == "" && (got.Status != Warning || !strings.HasSuffix(got.Detail, "in "+path) || got.Fix == "") ||
			folder != "" && (got.Status != OK || !strings.HasSuffix(got.Detail, named)) {
			t.Errorf("with libraries of %q: %+v", folder, got)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	// Where its own search path does not lead to the library, that is said.
	b.RunPath = nil
	if c := heapCensus(exe, elf, nil, &b); c.Status != Warning || !strings.Contains(c.Detail, lib+", which was not looked at") {
		t.Errorf("of one whose library is not found: %+v", c)
	}
}

func processesCensus(t *testing.T, exe string) {
	t.Helper()
	run := func(traced bool, args ...string) Check {
		t.Helper()
		cmd := exec.Command(exe, append([]string{"20000", "1000000"}, args...)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
		testprog.WaitExecuted(t, cmd.Process.Pid)
		look := func() Check { return Process(cmd.Process.Pid, []Check{{Name: "heap census", Status: OK}})[0] }
		if !traced {
			return look()
		}
		result := make(chan Check)
		go func() {
			runtime.LockOSThread() // what it traces is let go when it ends with this goroutine
			if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(cmd.Process.Pid), 0, 0, 0, 0); errno != 0 {
				t.Error(errno)
			}
			result <- look()
		}()
		return <-result
	}
	if c := run(false); c.Status != OK {
		t.Errorf("of a process: %+v", c)
	}
	if c := run(false, "+RTS", "--nonmoving-gc", "-RTS"); c.Status != Warning || !strings.Contains(c.Detail, "--nonmoving-gc") || c.Fix == "" {
		t.Errorf("of one with the non-moving collector: %+v", c)
	}
	if c := run(true); c.Status != Warning || !strings.Contains(c.Detail, fmt.Sprintf("process %d traces it", os.Getpid())) { // not the thread that does
		t.Errorf("of one that is traced: %+v", c)
	}
}
