package perf

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A list of events is split at commas, but not within a PMU's terms.
func TestSplitNames(t *testing.T) {
	for text, want := range map[string][]string{
		"cycles":                              {"cycles"},
		"cycles, alloc":                       {"cycles", "alloc"},
		"cpu_core/event=0x3c,umask=0x0/p,r1":  {"cpu_core/event=0x3c,umask=0x0/p", "r1"},
		"a,,b":                                {"a", "", "b"},
		"cpu_atom/cycles/,cpu_core/cycles/u,": {"cpu_atom/cycles/", "cpu_core/cycles/u", ""},
	} {
		if got := SplitNames(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is divided into %q", text, got)
		}
	}
}

// Modifiers restrict or refine an event; unknown and contradictory ones are errors.
func TestModifiers(t *testing.T) {
	e, err := Lookup("cycles:upp")
	if err != nil || e.Precise != 2 || !e.OnlyUser || e.OnlyKernel || e.String() != "cycles:upp" {
		t.Errorf("cycles:upp is %+v (%s), %v", e, e, err)
	}
	if e, err := Lookup("instructions:uk"); err != nil || e.OnlyUser || e.OnlyKernel {
		t.Errorf("both are no restriction: %+v, %v", e, err)
	}
	if e, err := Lookup("cycles:P"); err != nil || e.Precise != 3 {
		t.Errorf("cycles:P is %+v, %v", e, err)
	}
	attr := attributes(Event{Precise: 2, OnlyKernel: true}, Rate{Frequency: 99})[0]
	if attr.Bits&(unix.PerfBitPreciseIPBit1|unix.PerfBitPreciseIPBit2) != unix.PerfBitPreciseIPBit2 ||
		attr.Bits&unix.PerfBitExcludeUser == 0 || attr.Bits&unix.PerfBitFreq == 0 || attr.Sample != 99 {
		t.Errorf("attributes are %+v", attr)
	}
	for _, name := range []string{"cycles:", "cycles:x", "cycles:pppp", "cpu-clock:p"} {
		var bad *ModifierError
		if _, err := Lookup(name); !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// machine makes the sysfs of a hybrid CPU.
func machine(t *testing.T) system {
	t.Helper()
	root := t.TempDir()
	for path, text := range map[string]string{
		"cpu_core/type":                   "4\n",
		"cpu_core/cpus":                   "0-7\n",
		"cpu_core/format/event":           "config:0-7\n",
		"cpu_core/format/umask":           "config:8-15\n",
		"cpu_core/format/edge":            "config:18\n",
		"cpu_core/format/ldlat":           "config1:0-15\n",
		"cpu_core/format/offcore_rsp":     "config2:0-63\n",
		"cpu_core/format/wide":            "config:0-7,32-35\n",
		"cpu_core/format/strange":         "elsewhere:0-7\n",
		"cpu_core/events/cycles":          "event=0x3c\n",
		"cpu_core/events/mem-loads":       "event=0xcd,umask=0x1,ldlat=3\n",
		"cpu_core/events/mem-loads.scale": "1\n",
		"cpu_core/events/loop":            "loop\n",
		"cpu_atom/type":                   "10\n",
		"cpu_atom/cpus":                   "8-15\n",
		"software/type":                   "1\n",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return system{root}
}

// PMU/terms/ is encoded by the formats in sysfs, and wrong terms give an error that says
// what is wrong.
func TestPMUEvents(t *testing.T) {
	s := machine(t)
	for name, want := range map[string]Event{
		"cpu_core/event=0x3c,umask=0x1f/":          {Type: 4, Config: 0x1f3c, Unit: "events"},
		"cpu_core/cycles/":                         {Type: 4, Config: 0x3c, Unit: "cycles"},
		"cpu_core/mem-loads/pp":                    {Type: 4, Config: 0x1cd, Config1: 3, Precise: 2, Unit: "events"},
		"cpu_core/event=1,edge/":                   {Type: 4, Config: 1 | 1<<18, Unit: "events"},
		"cpu_core/config=0x12,config1=2/":          {Type: 4, Config: 0x12, Config1: 2, Unit: "events"},
		"cpu_core/offcore_rsp=0xffffffffffffffff/": {Type: 4, Config2: ^uint64(0), Unit: "events"},
		"cpu_core/wide=0xabc/":                     {Type: 4, Config: 0xbc | 0xa<<32, Unit: "events"},
		"cpu_atom/config=0x1/":                     {Type: 10, Config: 1, Unit: "events"},
	} {
		e, err := s.lookup(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if e.String() != name {
			t.Errorf("%s calls itself %s", name, e)
		}
		want.Name, want.Kind = e.Name, "pmu"
		if !reflect.DeepEqual(e, want) {
			t.Errorf("%s is %+v, want %+v", name, e, want)
		}
	}
	for name, say := range map[string]string{
		"gpu/cycles/":             "no PMU gpu",
		"cpu_core/nothing/":       "its events are",
		"cpu_core/nothing=1/":     `no term "nothing"`,
		"cpu_core/umask=0x100/":   "too large",
		"cpu_core/umask=many/":    "no number",
		"cpu_core/strange=1/":     "not known",
		"cpu_core/loop/":          `no term "loop"`,
		"cpu_core/cycles":         "PMU/term",
		"../software/x/":          "write it as",
		"cpu_core/../../../type/": "write it as",
		"cpu_core//":              "is no term",
		"cpu_core/..=1/":          "is no term",
	} {
		if _, err := s.lookup(name); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want %q", name, err, say)
		}
	}
}

// A generic event is counted by each kind of core separately.
func TestHybrid(t *testing.T) {
	s := machine(t)
	e, err := s.lookup("cycles")
	if err != nil {
		t.Fatal(err)
	}
	attrs := attributes(e, Rate{Period: 7})
	if len(attrs) != 2 || attrs[0].Config != 10<<32 || attrs[1].Config != 4<<32 || attrs[0].Type != unix.PERF_TYPE_HARDWARE {
		t.Errorf("attributes are %+v", attrs)
	}
	if e, err := s.lookup("page-faults"); err != nil || len(attributes(e, Rate{})) != 1 {
		t.Errorf("page-faults: %+v, %v", e, err)
	}
	if e, err := (system{t.TempDir()}).lookup("cycles"); err != nil || len(e.Cores) != 0 {
		t.Errorf("without PMUs: %+v, %v", e, err)
	}
}

// Every name is either an error, or an event that prints as one of its own names.
func FuzzLookup(f *testing.F) {
	for _, name := range []string{"cycles:upp", "r1c2", "cpu_core/event=0x3c,umask=1/p", "LLC-load-misses:k", "cpu_core/cycles/", "/", ":"} {
		f.Add(name)
	}
	root, err := os.MkdirTemp("", "pmu")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { os.RemoveAll(root) })
	for path, text := range map[string]string{"cpu_core/type": "4", "cpu_core/format/event": "config:0-7", "cpu_core/events/cycles": "event=0x3c"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			f.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	s := system{root}
	f.Fuzz(func(t *testing.T, name string) {
		e, err := s.lookup(name)
		if err != nil {
			return
		}
		again, err := s.lookup(e.String())
		if err != nil || !reflect.DeepEqual(e, again) {
			t.Errorf("%q is %+v; its name %q is %+v, %v", name, e, e, again, err)
		}
	})
}
