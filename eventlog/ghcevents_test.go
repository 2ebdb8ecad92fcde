package eventlog

import (
	"bytes"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"ccagent/internal/testprog"
)

// ghcEvents reads a log with the ghc-events library: one line an event.
func ghcEvents(t *testing.T, log []byte) []string {
	t.Helper()
	testprog.GHC(t, "")
	if out, err := exec.Command("ghc-pkg", "--simple-output", "list", "ghc-events").Output(); err != nil || len(bytes.TrimSpace(out)) == 0 {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "the ghc-events library", Hint: "apt-get install libghc-ghc-events-dev"})
	}
	exe := testprog.Build(t, "eventdump", testprog.Options{NoDebug: true})
	file := filepath.Join(t.TempDir(), "log.eventlog")
	if err := os.WriteFile(file, log, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(exe, file).Output()
	if err != nil && !losesItsPlace(log) {
		t.Fatalf("eventdump: %v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	// Block markers are shown by some of its versions only.
	return slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, "\tEventBlock {") })
}

// losesItsPlace reports whether a log has ticky counters as GHC since 9.6
// defines them, after which ghc-events before 0.18 loses its place.
func losesItsPlace(log []byte) bool {
	for r := NewReader(bytes.NewReader(log)); r.Next(); {
		if e, ok := r.Record().Event.(*TickyCounterDef); ok && e.JSON != "" {
			return true
		}
	}
	return false
}

var number = regexp.MustCompile(`[0-9]+`)

// numbers gives the numbers in a text, sorted.
func numbers(text string) []string {
	n := number.FindAllString(text, -1)
	slices.Sort(n)
	return n
}

// shown gives the numbers that the library shows of an event.
func shown(ev Event) []string {
	var all []string
	switch e := ev.(type) {
	case *StopThread:
		if e.Status != StoppedBlackHole {
			return numbers(fmt.Sprint(e.Thread))
		}
	case *TickyCounterDef:
		if e.Info == 0 && e.JSON == "" {
			ev = &struct {
				Event
				Counter     uint64
				Arity       uint16
				Kinds, Name string
			}{nil, e.Counter, e.Arity, e.Kinds, e.Name}
		}
	case *UserBinaryMsg: // shown as text, with numbers for what is not ASCII
		var text strings.Builder
		for _, b := range e.Data {
			if b <= unicode.MaxASCII {
				text.WriteByte(b)
			} else {
				fmt.Fprintf(&text, " %d ", b)
			}
		}
		return numbers(text.String())
	case *ProfSample:
		all = append(all, strconv.Itoa(len(e.Stack)))
	case *HeapSampleStack:
		all = append(all, strconv.Itoa(len(e.Stack)))
	}
	var collect func(v reflect.Value)
	collect = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				collect(v.Field(i))
			}
		case reflect.Interface: // an embedded Event
		case reflect.Slice:
			for i := range v.Len() {
				collect(v.Index(i))
			}
		case reflect.String:
			for _, r := range v.String() {
				if r > unicode.MaxASCII { // shown as its number
					all = append(all, strconv.Itoa(int(r)))
				}
			}
			all = append(all, number.FindAllString(v.String(), -1)...)
		default:
			if v.Type().PkgPath() == "" { // enumerations are shown by name
				all = append(all, fmt.Sprint(v.Interface()))
			}
		}
	}
	collect(reflect.ValueOf(ev).Elem())
	slices.Sort(all)
	return all
}

// compare holds what the library shows of a log against what we read in it,
// event for event.
func compare(t *testing.T, log []byte) {
	t.Helper()
	lines := ghcEvents(t, log)
	r := NewReader(bytes.NewReader(log))
	n := 0
	for r.Next() {
		rec := r.Record()
		if rec.Event.EventID() == IDBlockMarker {
			continue
		}
		if e, ok := rec.Event.(*TickyCounterDef); ok && e.JSON != "" {
			if n < 10 {
				t.Errorf("only %d events before the first that the library does not know", n)
			}
			return
		}
		if n >= len(lines) {
			t.Fatalf("the library reads %d events, we read %T after them", n, rec.Event)
		}
		time, rest, _ := strings.Cut(lines[n], "\t")
		cap, spec, _ := strings.Cut(rest, "\t")
		if m, ok := rec.Event.(*Malformed); ok {
			t.Fatal(m)
		}
		if time != strconv.FormatUint(rec.Time, 10) || cap != strconv.Itoa(rec.Cap) {
			t.Fatalf("event %d: %d ns of capability %d, the library has %s", n, rec.Time, rec.Cap, lines[n])
		}
		n++
		id := rec.Event.EventID()
		if strings.HasPrefix(spec, "UnknownEvent") {
			if want := fmt.Sprintf("UnknownEvent {ref = %d}", id); spec != want {
				t.Fatalf("event %d: the library has %s, want %s", n-1, spec, want)
			}
			continue
		}
		if id >= IDCapture {
			t.Fatalf("event %d: the library takes %T for %s", n-1, rec.Event, spec)
		}
		if _, ok := rec.Event.(*NonmovingCensus); ok && len(rec.Payload) > nonmovingLogSize {
			continue // the library takes the logs of GHC from 9.8.3 on for older ones, and shows shifted numbers
		}
		if e, ok := rec.Event.(*NonmovingCensus); ok { // older versions show the logarithm
			const size = "BlkSize = %d,"
			spec = strings.Replace(spec, fmt.Sprintf(size, bits.Len16(e.BlockSize)-1), fmt.Sprintf(size, e.BlockSize), 1)
		}
		if got, want := numbers(spec), shown(rec.Event); !slices.Equal(got, want) {
			t.Errorf("event %d: %T %+v\nthe library has %s", n-1, rec.Event, rec.Event, spec)
		}
	}
	if n != len(lines) {
		t.Errorf("we read %d events, the library goes on with %s", n, lines[n])
	}
}

// GHC's own library reads every event that the Writer writes as this package does.
func TestGHCEventsReadsWhatWeWrite(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	var log bytes.Buffer
	w := NewWriter(&log, &WriterOptions{Buffer: 4 << 10})
	for i := range uint64(20) {
		for _, ev := range everyEvent() {
			generate(rng, ev)
			if err := w.Write(1000*i+rng.Uint64N(1500), rng.IntN(4)-1, ev); err != nil {
				t.Fatalf("%T: %v", ev, err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	compare(t, log.Bytes())
}

// Strings that other readers would reject are corrected when written.
func TestGHCEventsReadsMendedStrings(t *testing.T) {
	const bad = "a\xff\x00\xc3(z"
	var log bytes.Buffer
	w := NewWriter(&log, nil)
	for _, ev := range []Event{
		&LogMsg{bad}, &UserMsg{bad}, &UserMarker{bad}, &RTSIdentifier{1, bad}, &ThreadLabel{1, bad},
		&ProgramArgs{1, []string{bad, bad}}, &ProgramEnv{1, []string{bad}},
		&CostCentre{1, bad, bad, bad, 0}, &HeapSampleString{0, 1, bad}, &PerfName{1, bad}, &UserMsg{"end"},
	} {
		if err := w.Write(1, NoCap, ev); err != nil {
			t.Fatalf("%T: %v", ev, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	lines := ghcEvents(t, log.Bytes())
	if last := lines[len(lines)-1]; !strings.Contains(last, `"end"`) || len(lines) != 11 {
		t.Errorf("the library stops after %d events: %s", len(lines), last)
	}
}

// GHC's own library and this package read the same in the logs of run-time systems.
func TestGHCEventsAgreesOnRTSLogs(t *testing.T) {
	for name, log := range rtsLogs(t) {
		t.Run(name, func(t *testing.T) { compare(t, log) })
	}
}

// The same holds for logs that the installed GHC's RTS writes now, of a program with many
// threads on several capabilities.
func TestGHCEventsAgreesOnFreshLogs(t *testing.T) {
	exe := testprog.Build(t, "threads100", testprog.Options{Threaded: true, Flags: []string{"-eventlog"}})
	for _, flags := range []string{"-l -N2", "-lasgpfu -N2", "-l-au", "-l -hT -i0.01", "-l --nonmoving-gc -N2", "-l -I0 -A64k -N2"} {
		t.Run(flags, func(t *testing.T) {
			dir := t.TempDir()
			args := append([]string{"10", "40", "4", "+RTS"}, strings.Fields(flags)...)
			cmd := exec.Command(testprog.CopyTo(t, exe, dir), args...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			log, err := os.ReadFile(filepath.Join(dir, "threads100.eventlog"))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, log)
			if again := reencode(t, log); !bytes.Equal(again, log) {
				t.Errorf("encoded again, the log differs at %d", firstDifference(again, log))
			}
		})
	}
}
