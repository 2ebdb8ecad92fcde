package perf

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// devices is the directory in which the kernel describes its PMUs
// (Documentation/ABI/testing/sysfs-bus-event_source-devices-*).
const devices = "/sys/bus/event_source/devices"

// system is a machine as described by its sysfs.
type system struct{ root string }

var here = system{devices}

// PMU is a performance monitoring unit.
type PMU struct {
	Name string
	Type uint32
	// CPUs is the list of CPUs that it counts for; empty for all.
	CPUs   string
	events []string
}

// maxSysfsFile limits what is read of one file; sysfs files have at most one page.
const maxSysfsFile = 4096

func (s system) read(path ...string) (string, error) {
	b, err := os.ReadFile(filepath.Join(append([]string{s.root}, path...)...))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b[:min(len(b), maxSysfsFile)])), nil
}

func (s system) pmu(name string) (PMU, error) {
	if name == "" || strings.ContainsAny(name, "/.\x00") {
		return PMU{}, fmt.Errorf("%q is no name of a PMU", name)
	}
	text, err := s.read(name, "type")
	if err != nil {
		return PMU{}, fmt.Errorf("this machine has no PMU %s", name)
	}
	typ, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return PMU{}, fmt.Errorf("read type of PMU %s: %w", name, err)
	}
	p := PMU{Name: name, Type: uint32(typ)}
	p.CPUs, _ = s.read(name, "cpus")
	entries, _ := os.ReadDir(filepath.Join(s.root, name, "events"))
	for _, e := range entries {
		if n := e.Name(); !strings.Contains(n, ".") { // NAME.scale and NAME.unit belong to NAME
			p.events = append(p.events, n)
		}
	}
	return p, nil
}

// pmus lists the machine's PMUs by name.
func (s system) pmus() []PMU {
	entries, _ := os.ReadDir(s.root)
	var found []PMU
	for _, e := range entries {
		if p, err := s.pmu(e.Name()); err == nil {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b PMU) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// corePMUs returns the PMUs of a hybrid CPU's kinds of cores, none if it has one kind.
func (s system) corePMUs() []PMU {
	var cores []PMU
	for _, p := range s.pmus() {
		// Other machines have one PMU for all cores, "cpu", without a list of CPUs.
		if p.CPUs != "" && (strings.HasPrefix(p.Name, "cpu_") || strings.HasPrefix(p.Name, "armv8_")) {
			cores = append(cores, p)
		}
	}
	if len(cores) < 2 {
		return nil
	}
	return cores
}

// field is the position of a term's bits, from the PMU's format file: "config:0-7,32-35".
type field struct {
	word int // of config, config1, config2
	bits [][2]uint
}

func parseField(text string) (field, error) {
	name, ranges, ok := strings.Cut(text, ":")
	f := field{word: slices.Index([]string{"config", "config1", "config2"}, name)}
	if !ok || f.word < 0 {
		return field{}, fmt.Errorf("format %q is not known", text)
	}
	for r := range strings.SplitSeq(ranges, ",") {
		lo, hi, isRange := strings.Cut(r, "-")
		if !isRange {
			hi = lo
		}
		from, err1 := strconv.ParseUint(lo, 10, 6)
		to, err2 := strconv.ParseUint(hi, 10, 6)
		if err1 != nil || err2 != nil || from > to {
			return field{}, fmt.Errorf("format %q is not known", text)
		}
		f.bits = append(f.bits, [2]uint{uint(from), uint(to)})
	}
	return f, nil
}

// put distributes a value over the field's bits, lowest first.
func (f field) put(config *[3]uint64, value uint64) error {
	for _, r := range f.bits {
		width := r[1] - r[0] + 1
		mask := ^uint64(0) >> (64 - width)
		config[f.word] |= (value & mask) << r[0]
		if width == 64 {
			value = 0
		} else {
			value >>= width
		}
	}
	if value != 0 {
		return fmt.Errorf("the value is too large")
	}
	return nil
}

// PMUEvents lists the events that this machine's PMUs name, as PMU/event/, except for those
// of the kernel's software PMUs.
func PMUEvents() []Event {
	var found []Event
	for _, p := range here.pmus() {
		for _, name := range p.events {
			if e, err := here.event(p.Name, name); err == nil {
				found = append(found, e)
			}
		}
	}
	return found
}

// maxTerms limits the terms of an event, including those of named events.
const maxTerms = 64

// terms sets the fields given by terms such as "event=0x3c,umask=1,any".
func (s system) terms(p PMU, text string, config *[3]uint64, nested bool) error {
	n := 0
	for term := range strings.SplitSeq(text, ",") {
		if n++; n > maxTerms {
			return fmt.Errorf("more than %d terms", maxTerms)
		}
		name, number, has := strings.Cut(strings.TrimSpace(term), "=")
		if name == "" || strings.ContainsAny(name, "/\x00") || name == ".." || name == "." {
			return fmt.Errorf("%q is no term", term)
		}
		value := uint64(1)
		if has {
			var err error
			if value, err = strconv.ParseUint(number, 0, 64); err != nil {
				return fmt.Errorf("%s: %q is no number", name, number)
			}
		}
		format, err := s.read(p.Name, "format", name)
		switch word := slices.Index([]string{"config", "config1", "config2"}, name); {
		case err == nil:
			f, err := parseField(format)
			if err != nil {
				return err
			}
			if err := f.put(config, value); err != nil {
				return fmt.Errorf("%s=%#x: %w", name, value, err)
			}
		case word >= 0:
			config[word] |= value
		case !has && !nested:
			// The name of an event stands for that event's terms.
			alias, err := s.read(p.Name, "events", name)
			if err != nil {
				return fmt.Errorf("PMU %s has no event and no term %q%s", p.Name, name, list("; its events are ", p.events))
			}
			if err := s.terms(p, alias, config, true); err != nil {
				return fmt.Errorf("event %s: %w", name, err)
			}
		default:
			return fmt.Errorf("PMU %s has no term %q", p.Name, name)
		}
	}
	return nil
}

func list(intro string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	const most = 12
	if len(names) > most {
		return intro + strings.Join(names[:most], ", ") + ", …"
	}
	return intro + strings.Join(names, ", ")
}

// event makes an event of a PMU from its terms.
func (s system) event(pmu, terms string) (Event, error) {
	p, err := s.pmu(pmu)
	if err != nil {
		return Event{}, err
	}
	var config [3]uint64
	if err := s.terms(p, terms, &config, false); err != nil {
		return Event{}, err
	}
	return Event{
		Name: pmu + "/" + terms + "/", Type: eventType(p.Type), Config: config[0], Config1: config[1], Config2: config[2],
		Unit: unitOf(terms), Kind: "pmu",
	}, nil
}

// unitOf returns the unit of a PMU's event that is named like a generic event.
func unitOf(terms string) string {
	for _, e := range Events() {
		if e.Name == terms || slices.Contains(e.Aliases, terms) {
			return e.Unit
		}
	}
	return "events"
}
