package overhead

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/perf"
)

// keptPath is where root keeps measured costs: in a folder that a boot begins without.
const keptPath = "/run/ccagent/costs.json"

// keptFor is how long a measurement is used: hypervisors move machines, and are upgraded.
const keptFor = 6 * time.Hour

// kept are measured costs, ns, as they are kept for later captures.
type kept struct {
	Boot       string                     `json:"boot"` // containers may keep /run
	At         time.Duration              `json:"at"`   // since that boot
	Trap       float64                    `json:"trap,omitempty"`
	Interrupts map[perf.Interrupt]float64 `json:"interrupts,omitempty"`
	// Busy is set if the machine had more to do than CPUs when they were measured, which only adds to
	// them: they are measured again soon, and the lower figure is kept.
	Busy bool `json:"busy,omitempty"`
}

// doubtedFor is how long a measurement of a busy machine is used.
const doubtedFor = time.Minute

// doubted reports whether costs are to be measured again.
func (k *kept) doubted() bool {
	_, now, err := sinceBoot()
	return err == nil && k.Busy && now-k.At > doubtedFor
}

// busy reports whether more threads want to run than there are CPUs, by the last minute's average.
func busy() bool {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return false
	}
	var load float64
	_, err = fmt.Sscan(string(text), &load)
	return err == nil && load > float64(runtime.NumCPU())
}

// lower is the lower one of two figures of the same cost, of which the first may be missing (0).
func lower(before, ns float64) float64 {
	if before > 0 {
		return min(before, ns)
	}
	return ns
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
	for _, ns := range append([]float64{k.Trap}, values(k.Interrupts)...) {
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
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return "", 0, err
	}
	return strings.TrimSpace(string(b)), time.Duration(t.Nano()), nil
}
