package overhead

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"ccagent/perf"

	"github.com/google/go-cmp/cmp"
)

// What is kept comes back in the same boot, unless it is old, not plausible, or others may have
// written it; a capture that finds all that it needs measures nothing.
func TestKeptCosts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "costs.json")
	want := kept{Trap: 700, Interrupts: map[perf.Interrupt]float64{perf.TimerInterrupt: 1500}}
	if _, err := loadKept(path); err == nil {
		t.Fatal("costs are kept before they are")
	}
	if err := want.store(path); err != nil {
		t.Fatal(err)
	}
	got, err := loadKept(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Interrupts, got.Interrupts); diff != "" || got.Trap != want.Trap {
		t.Errorf("%v comes back as %v", want, got)
	}

	c := NewCosts()
	c.NeedTrap()
	c.NeedInterrupt(perf.TimerInterrupt)
	c.path = path
	c.calibrate()
	if ns, measured := c.Measured(perf.TimerInterrupt); ns != 1500 || !measured || c.Trap() != 700 || c.measuring != nil {
		t.Errorf("an interrupt costs %v (%v), a trap %v", ns, measured, c.Trap())
	}

	boot, now, err := sinceBoot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(s string) func() error { return func() error { return os.WriteFile(path, []byte(s), 0o600) } }
	for name, plant := range map[string]func() error{
		"cut off":      write(string(text[:len(text)-2])),
		"another boot": write(`{"boot": "another", "at": 1, "trap": 5}`),
		"later":        write(`{"boot": "` + boot + `", "at": 9000000000000000000, "trap": 5}`),
		"too dear":     write(`{"boot": "` + boot + `", "at": ` + digits(now) + `, "trap": 1e9}`),
		"writable":     func() error { return os.Chmod(path, 0o666) },
		"a link":       func() error { return os.Rename(path, path+".real") },
	} {
		os.Remove(path)
		if err := write(string(text))(); err != nil {
			t.Fatal(err)
		}
		if err := plant(); err != nil {
			t.Fatal(err)
		}
		if name == "a link" {
			if err := os.Symlink(path+".real", path); err != nil {
				t.Fatal(err)
			}
		}
		if k, err := loadKept(path); err == nil {
			t.Errorf("%s: used: %v", name, k)
		}
	}
}

func digits(d time.Duration) string { return strconv.FormatInt(int64(d), 10) }

// Costs that were measured long ago are measured again, those that were not are used.
func TestRefresh(t *testing.T) {
	c := NewCosts()
	c.path = filepath.Join(t.TempDir(), "costs.json")
	k := kept{Interrupts: map[perf.Interrupt]float64{perf.TimerInterrupt: 1}}
	if err := k.store(c.path); err != nil {
		t.Fatal(err)
	}
	c.Refresh() // nothing is needed
	c.NeedInterrupt(perf.TimerInterrupt)
	c.calibrate()
	c.Refresh()
	if c.measuring != nil {
		t.Fatal("what was measured just now is measured again")
	}
	c.path = "" // what is measured now is not kept
	c.at -= freshFor + time.Second
	c.Refresh()
	if c.measuring == nil {
		t.Fatal("what was measured long ago is not measured again")
	}
	if ns, _ := c.Measured(perf.TimerInterrupt); ns < 100 && ns != 1 { // 1 if it cannot be measured here
		t.Errorf("an interrupt costs %v ns", ns)
	}
	at := c.at
	c.Refresh()
	if c.at != at {
		t.Error("it is measured without end")
	}
}
