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
	// Counted makes time a function of the executed instructions, so that counters are
	// exact. It requires one CPU.
	Counted bool
	CPUs    int
	Append  string // to the kernel's command line
}

// qemu gives what an architecture's machine is called with, and the part of its
// kernel's command line that goes with it.
func (m Machine) qemu() (args []string, kernel string, err error) {
	switch m.Arch {
	case "amd64":
		return []string{"qemu-system-x86_64", "-M", "pc", "-cpu", "max"},
			// On a busy host the emulated timer may seem not to tick.
			"console=ttyS0 earlyprintk=ttyS0 no_timer_check", nil
	case "arm64":
		// Authenticating pointers as specified is slow to emulate.
		return []string{"qemu-system-aarch64", "-M", "virt", "-cpu", "max,pauth-impdef=on"}, "console=ttyAMA0", nil
	}
	return nil, "", fmt.Errorf("no machine for %s", m.Arch)
}

// maxBoots limits the retries after a kernel that crashes: on a busy host the emulator's
// clocks can stall it, and its emulation of cmpxchg16b now and then leaves garbage in the
// flags. A kernel that one of our programs crashes does so each time.
const maxBoots = 3

// Run boots the machine with the files, runs the jobs, and returns their results in the
// jobs' order and the rest of the console's output. ctx limits the whole run. Results before
// an error are returned too.
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
	if err := writeInitramfs(initrd, files, jobs); err != nil {
		return nil, "", err
	}
	argv = append(argv, "-m", "1024", "-smp", fmt.Sprint(max(1, m.CPUs)), "-nographic", "-no-reboot", "-nic", "none",
		"-kernel", m.Kernel, "-initrd", initrd,
		"-append", kernel+" panic=-1 quiet loglevel=1 "+m.Append)
	if m.Counted {
		argv = append(argv, "-icount", "shift=1,sleep=off")
	}
	var rest strings.Builder
	for range maxBoots {
		var out bytes.Buffer
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Stdout, cmd.Stderr = &out, &out
		cmd.WaitDelay = 5 * time.Second
		runErr := cmd.Run()
		if cause := context.Cause(ctx); cause != nil {
			runErr = fmt.Errorf("stopped: %w", cause)
		}
		begun := bytes.Contains(out.Bytes(), []byte(Begun))
		panicked := bytes.Contains(out.Bytes(), []byte("Kernel panic - not syncing"))
		results, err = Results(&out, func(line string) { fmt.Fprintln(&rest, line) })
		if err = errors.Join(runErr, err); err != nil || begun && !panicked {
			break
		}
		fmt.Fprintln(&rest, "(the kernel went down; the machine is booted again)")
	}
	if err != nil {
		err = fmt.Errorf("run %s machine: %w", m.Arch, err)
	} else if len(results) != len(jobs) {
		err = fmt.Errorf("run %s machine: %d of %d jobs were done", m.Arch, len(results), len(jobs))
	}
	return results, rest.String(), err
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
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	return errors.Join(all.Write(f), f.Close())
}
