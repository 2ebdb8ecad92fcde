package overhead

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/perf"
)

// keptPath is where root keeps measured costs: in a folder that a boot begins without. Earlier builds,
// which measured with warm caches, keep theirs as costs.json.
const keptPath = "/run/ccagent/costs-cold.json"

// keptFor is how long a measurement is used by captures that begin; those that last measure anew (Refresh).
const keptFor = time.Hour

// kept are measured costs, ns, as they are kept for later captures.
type kept struct {
	Boot       string                     `json:"boot"` // containers may keep /run
	At         time.Duration              `json:"at"`   // since that boot
	Trap       float64                    `json:"trap,omitempty"`
	Stepped    float64                    `json:"stepped,omitempty"`
	Interrupts map[perf.Interrupt]float64 `json:"interrupts,omitempty"`
}

// trap is where what a hit of a probe costs is kept, by how the kernel executes the instruction.
func (k *kept) trap(kind trapKind) *float64 {
	if kind == steppedTrap {
		return &k.Stepped
	}
	return &k.Trap
}

// loadKept returns what is kept at a path, and can be used: it is this user's file, of this boot
// and recent.
func loadKept(path string) (k kept, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return k, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return k, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return k, errors.New("others may have written it")
	}
	const most = 4096
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return k, err
	}
	if err := json.Unmarshal(b, &k); err != nil {
		return kept{}, err
	}
	boot, now, err := sinceBoot()
	if err != nil {
		return kept{}, err
	}
	if k.Boot != boot || now < k.At || now-k.At > keptFor {
		return kept{}, errors.New("of another boot, or old")
	}
	for _, ns := range append([]float64{k.Trap, k.Stepped}, values(k.Interrupts)...) {
		if math.IsNaN(ns) || ns < 0 || ns > mostKept {
			return kept{}, errors.New("not plausible")
		}
	}
	return k, nil
}

// mostKept is more than an interrupt or a trap can cost, ns.
const mostKept = 1e6

func values(m map[perf.Interrupt]float64) (out []float64) {
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// store keeps costs at a path. What fails costs the next capture a measurement.
func (k kept) store(path string) error {
	var err error
	if k.Boot, k.At, err = sinceBoot(); err != nil {
		return err
	}
	b, err := json.Marshal(k)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "costs-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// sinceBoot identifies the boot, and returns how long ago it was.
func sinceBoot() (id string, ago time.Duration, err error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0, err
	}
	ago, err = sinceStart()
	return strings.TrimSpace(string(b)), ago, err
}

// sinceStart returns how long ago the machine was booted.
func sinceStart() (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return time.Duration(t.Nano()), err
}
