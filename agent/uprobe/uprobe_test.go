package uprobe

import (
	"errors"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"ccagent/agent/procfs"
	"ccagent/internal/testprog"
)

//go:noinline
func probed(n int) int { return n + 1 }

// offsetOf returns the place in this program's file of a function.
func offsetOf(t *testing.T, f any) uint64 {
	t.Helper()
	addr := uint64(reflect.ValueOf(f).Pointer())
	maps, err := procfs.Maps(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps {
		if addr >= m.Start && addr < m.End {
			return addr - m.Start + m.Offset
		}
	}
	t.Fatalf("%#x is not mapped", addr)
	return 0
}

// counter is a program that does nothing, of which the kernel counts how often it runs.
func counter(t *testing.T, multi bool) *ebpf.Program {
	t.Helper()
	spec := &ebpf.ProgramSpec{Type: ebpf.Kprobe, License: "Dual BSD/GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}}
	if multi {
		spec.AttachType = ebpf.AttachTraceUprobeMulti
	}
	p, err := ebpf.NewProgram(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func runs(t *testing.T, p *ebpf.Program) uint64 {
	t.Helper()
	st, err := p.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return st.RunCount
}

// A probe runs its program at every hit until it is closed, by one link or by one each.
func TestPut(t *testing.T) {
	testprog.NeedRoot(t)
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		t.Fatal(err)
	}
	defer stats.Close()
	exe, err := link.OpenExecutable("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for name, multi := range map[string]bool{"one each": false, "one link": true} {
		t.Run(name, func(t *testing.T) {
			if multi && !Multi() {
				testprog.Skip(t, &testprog.UnsupportedError{Need: "a kernel that puts many probes into a process at once"})
			}
			program := counter(t, multi)
			probes, err := Put(exe, uint32(os.Getpid()), program, multi, Site{Offset: offsetOf(t, probed), Cookie: 7})
			if err != nil {
				t.Fatal(err)
			}
			const calls = 100
			n := 0
			for range calls {
				n = probed(n)
			}
			if got := runs(t, program); got != calls || n != calls {
				t.Errorf("the program ran %d times for %d calls", got, n)
			}
			if err := probes.Close(); err != nil {
				t.Fatal(err)
			}
			n = probed(n)
			if got := runs(t, program); got != calls || n != calls+1 {
				t.Errorf("the program ran %d times after its probe was closed; %d calls", got-calls, n)
			}
			if err := probes.Close(); err != nil {
				t.Errorf("closed twice: %v", err)
			}
		})
	}
}

// Where one of several probes cannot be put none is left, and the error is an *Error.
func TestPutAllOrNone(t *testing.T) {
	testprog.NeedRoot(t)
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		t.Fatal(err)
	}
	defer stats.Close()
	exe, err := link.OpenExecutable("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := counter(t, false)
	const beyond = 1 << 40 // of any file
	_, err = Put(exe, uint32(os.Getpid()), program, false, Site{Offset: offsetOf(t, probed)}, Site{Offset: beyond})
	var refused *Error
	if !errors.As(err, &refused) {
		t.Fatalf("a probe beyond the file: %v", err)
	}
	if n := probed(1); n != 2 {
		t.Error(n)
	}
	if got := runs(t, program); got != 0 {
		t.Errorf("the program ran %d times", got)
	}
}

// Each refusal of the kernel's is reported with what helps against it.
func TestErrorHelps(t *testing.T) {
	for _, c := range []struct {
		err  error
		help string
	}{
		{unix.EPERM, "seccomp"},
		{unix.EACCES, "CAP_SYS_ADMIN"},
		{unix.EIO, "file system"},
		{unix.EINVAL, "file system"},
		{fs.ErrNotExist, "CONFIG_UPROBE_EVENTS"},
		{ebpf.ErrNotSupported, "older than 5.15"},
		{unix.EMFILE, "ulimit -n"},
		{unix.EBUSY, "ccagent doctor"},
	} {
		e := &Error{Err: c.err}
		if !strings.Contains(e.Error(), c.help) || !errors.Is(e, c.err) {
			t.Errorf("%v: %q does not mention %q", c.err, e, c.help)
		}
	}
}
