package process

import (
	"io"
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"ccagent/agent/procfs"
	"ccagent/internal/testprog"
)

// Memory is read as it is, and where there is none, or no more, that is an error.
func TestMemory(t *testing.T) {
	words := [3]uint64{1, 2, 1 << 60}
	at := uint64(uintptr(unsafe.Pointer(&words[0])))
	m := &Memory{pid: uint32(os.Getpid())}
	var got [3]uint64
	if err := m.Words(at, got[:]); err != nil || got != words {
		t.Errorf("read %v, %v", got, err)
	}
	if w, err := m.Word(at + 16); err != nil || w != 1<<60 {
		t.Errorf("read %d, %v", w, err)
	}
	for _, bad := range []uint64{0, 8, 1 << 63, ^uint64(7)} {
		if _, err := m.Word(bad); err == nil {
			t.Errorf("there is a word at %#x", bad)
		}
	}
	m.close()
	if _, err := m.Word(at); err == nil {
		t.Error("memory that was closed is read")
	}
	never := &Memory{pid: uint32(os.Getpid())}
	never.close()
	if _, err := never.Word(at); err == nil {
		t.Error("memory that was closed before it was opened is read")
	}
}

// Memory reads one program's memory: after an exec it does not read the new program's.
func TestMemoryIsOneProgramsOnly(t *testing.T) {
	cmd := exec.Command("sh", "-c", "read x; exec cat")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	testprog.WaitExecuted(t, cmd.Process.Pid)
	m := &Memory{pid: uint32(cmd.Process.Pid)}
	m.hold()
	if _, err := m.Word(codeOf(t, cmd.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	// What cat has answered, it is there to answer.
	if _, err := io.WriteString(input, "x\nhere\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(output, make([]byte, len("here\n"))); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Word(codeOf(t, cmd.Process.Pid)); err == nil {
		t.Error("the memory of another program is read")
	}
}

// codeOf is where a process has code.
func codeOf(t *testing.T, pid int) uint64 {
	t.Helper()
	maps, err := procfs.Maps(pid)
	if err != nil || len(maps) == 0 {
		t.Fatalf("no mappings: %v", err)
	}
	return maps[0].Start
}
