package hwtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Machine is an emulated machine.
type Machine struct {
	Arch   string // GOARCH
	Kernel string // path of its image
	// Counted makes time a function of the executed instructions, whatever the speed of this
	// machine and whatever else runs on it: a program takes so much CPU time, and is sampled so
	// often. With one CPU counters are exact. Several CPUs take turns.
	Counted bool
	CPUs    int
	Append  string // to the kernel's command line
}

// qemu gives what an architecture's machine is called with, and the part of its
// kernel's command line that goes with it.
func (m Machine) qemu() (args []string, kernel string, err error) {
	switch m.Arch {
	case "amd64":
		// QEMU 7.2 lets cmpxchg16b copy an operand's bits into the flags, such as that of the direction in which
		// memory is cleared. The kernel's allocator calls it everywhere where there is one. Five levels of page
		// tables are of no use here.
		return []string{"qemu-system-x86_64", "-M", "pc", "-cpu", "max,cx16=off,la57=off"},
			// On a busy host the emulated timer may seem not to tick.
			"console=ttyS0 earlyprintk=ttyS0 no_timer_check", nil
	case "arm64":
		// Authenticating pointers as specified is slow to emulate.
		return []string{"qemu-system-aarch64", "-M", "virt", "-cpu", "max,pauth-impdef=on"}, "console=ttyAMA0", nil
	}
	return nil, "", fmt.Errorf("no machine for %s", m.Arch)
}

// A kernel may go down for the emulator's fault: on a busy host its clocks can stall it. Before the guest's first
// program it is never ours. A kernel that one of our programs crashes does so each time.
const (
	maxBoots   = 10 // of a machine
	maxCrashes = 3  // of a kernel during the same job
	// bootTime is a hundred times what the way to the guest's first program takes on a CPU of its own.
	bootTime = 10 * time.Minute
)

// Run boots the machine with the files, runs the jobs, and returns their results in the
// jobs' order and the rest of the console's output. If the kernel goes down, the machine is booted
// again for the jobs that were not done. ctx limits the whole run. Results before an error are
// returned too.
func (m Machine) Run(ctx context.Context, files Initramfs, jobs []Job) (results []Result, console string, err error) {
	argv, kernel, err := m.qemu()
	if err != nil {
		return nil, "", err
	}
	dir, err := os.MkdirTemp("", "ccagent-hwtest-")
	if err != nil {
		return nil, "", fmt.Errorf("start %s machine: %w", m.Arch, err)
	}
	defer os.RemoveAll(dir)
	initrd := filepath.Join(dir, "initramfs")
	argv = append(argv, "-m", "1024", "-smp", fmt.Sprint(max(1, m.CPUs)), "-nographic", "-no-reboot", "-nic", "none",
		"-kernel", m.Kernel, "-initrd", initrd,
		"-append", kernel+" panic=-1 quiet loglevel=1 "+m.Append)
	if m.Counted {
		argv = append(argv, "-icount", "shift=1,sleep=off")
	}
	var rest strings.Builder
	crashes := 0
	for range maxBoots {
		if err := writeInitramfs(initrd, files, jobs[len(results):]); err != nil {
			return results, rest.String(), err
		}
		b := bootOnce(ctx, argv, &rest)
		results = append(results, b.results...)
		switch {
		case b.err != nil:
			return results, rest.String(), fmt.Errorf("run %s machine: %w", m.Arch, b.err)
		case !b.crashed && len(results) != len(jobs):
			return results, rest.String(), fmt.Errorf("run %s machine: %d of %d jobs were done", m.Arch, len(results), len(jobs))
		case len(results) == len(jobs):
			return results, rest.String(), nil
		case len(b.results) > 0:
			crashes = 1
		case b.begun:
			crashes++
		}
		if crashes == maxCrashes {
			return results, rest.String(), fmt.Errorf("run %s machine: its kernel went down %d times during job %s", m.Arch, crashes, jobs[len(results)].Name)
		}
		fmt.Fprintln(&rest, "(the kernel went down; the machine is booted again)")
	}
	return results, rest.String(), fmt.Errorf("run %s machine: its kernel went down %d times, %d of %d jobs were done", m.Arch, maxBoots, len(results), len(jobs))
}

// once is what came of booting a machine once.
type once struct {
	results []Result
	begun   bool // the guest's first program has run
	crashed bool
	err     error
}

var errStalled = errors.New("the machine does not boot")

// terminal keeps what a machine writes, and calls seen at the guest's first line.
type terminal struct {
	text  bytes.Buffer // not embedded: its ReadFrom would go round Write
	begun bool
	seen  func()
}

func (t *terminal) Write(p []byte) (int, error) {
	n, err := t.text.Write(p)
	if !t.begun && bytes.Contains(t.text.Bytes(), []byte(Begun)) {
		t.begun = true
		t.seen()
	}
	return n, err
}

// bootOnce runs an emulator until it ends, and writes to rest what its console had besides results.
func bootOnce(ctx context.Context, argv []string, rest *strings.Builder) once {
	// A boot that stalls is ended and counts as a crash.
	boot, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(bootTime, func() { cancel(errStalled) })
	defer stalled.Stop()
	out := terminal{seen: func() { stalled.Stop() }}
	cmd := exec.CommandContext(boot, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	switch cause := context.Cause(ctx); {
	case cause != nil:
		err = fmt.Errorf("stopped: %w", cause)
	case errors.Is(context.Cause(boot), errStalled):
		err = nil
	}
	b := once{begun: out.begun}
	b.crashed = !b.begun || bytes.Contains(out.text.Bytes(), []byte("Kernel panic - not syncing"))
	var wrong error
	b.results, wrong = Results(&out.text, func(line string) { fmt.Fprintln(rest, line) })
	if b.crashed {
		wrong = nil // it may have gone down while it sent a result
	}
	b.err = errors.Join(err, wrong)
	return b
}

func writeInitramfs(path string, files Initramfs, jobs []Job) error {
	text, err := json.Marshal(jobs)
	if err != nil {
		return fmt.Errorf("write jobs: %w", err)
	}
	all := Initramfs{JobFile: {Data: text, Mode: 0o644}}
	for name, f := range files {
		all[name] = f
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	return errors.Join(all.Write(f), f.Close())
}
