package process

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"ccagent/agent/uprobe"
	"ccagent/internal/testprog"
	"ccagent/symbolize/elffile"
)

// A probe that the kernel refuses since the process has ended, even if nobody has waited for it
// yet, is reported as that, not as something that the kernel lacks.
func TestProbeOfEndedProcess(t *testing.T) {
	testprog.NeedRoot(t)
	path, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elffile.Open(file, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Kprobe, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	cmd := exec.Command(path)
	ends, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := ends.Read(make([]byte, 1)); err == nil { // EOF when it exits
		t.Fatal("true has written something")
	}
	im := &Image{PID: uint32(cmd.Process.Pid), RTS: &Module{File: file, Segments: f.Segments}}
	probe := Probe{Addr: f.Section(".text").Addr}
	check := func(when string) {
		t.Helper()
		probes, err := im.Put(program, uprobe.Multi(), probe)
		switch {
		case err == nil:
			probes.Close()
		case !errors.Is(err, ErrEnded):
			t.Errorf("%s: %v", when, err)
		}
		if probes != nil && when == "after it was waited for" {
			t.Errorf("%s: the kernel has put a probe into a process that is gone", when)
		}
	}
	check("after its exit")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	check("after it was waited for")
}
