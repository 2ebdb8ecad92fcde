// Package programlogs keeps a small log of each kind of program that tests profile (ghc.Programs), with what ccview shows of it, and checks
// the one against the other.
//
// scripts/bench programs makes them: TestProgramLogs of internal/e2e records them on this machine, that of internal/hwtest on an emulated
// one. All are of testdata/programs/seen, but that in a library is of embedded, and that of bytecode of interpreted, beside it. A test of cmd/ccview asks of each
// stored log anew, and the table in docs/ghc.md is made of what is stored.
package programlogs

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ccagent/internal/ghc"
)

// Cells, Rounds are arguments of the program seen in all logs; how long it spins depends on the machine.
const (
	Cells  = "2000"
	Rounds = "20"
	cells  = 2000
	// workers are the threads that the program forks.
	workers = 3
)

// Collect has seen collect its heap often enough, and say what it has allocated.
var Collect = []string{"+RTS", "-s", "-A128k", "-RTS"}

// Flags are the flags of ccagent record for a kind of program. A program that GHC interprets is recorded by CPU time alone: allocation,
// collections, threads and heap are mostly those of GHC itself. A pause for a census has no limit, so that each census is complete.
func (k Kind) Flags() []string {
	if k.Form == ghc.Interpreted {
		return []string{"-F", "499", "-e", "cpu-clock"}
	}
	return []string{"-F", "499", "-e", "cpu-clock,alloc,gc,threads,heap=1ms", "--max-pause", "0"}
}

// records says whether an event is among those that are recorded.
func (k Kind) records(event string) bool { return k.Form != ghc.Interpreted || event == "cpu-clock" }

// Folder is where logs are, from the module's root.
const Folder = "internal/programlogs/testdata"

// maxLog bounds a log that is read.
const maxLog = 16 << 20

// Kind is a kind of program, as one of ghc.Programs with one of its ways.
type Kind struct {
	Release, Arch string
	Form          ghc.Form
	Way           ghc.Way
}

// Kinds lists all that ghc.Programs has, in its order.
func Kinds() (all []Kind) {
	for _, p := range ghc.Programs {
		for _, w := range p.Ways {
			all = append(all, Kind{p.Release, p.Arch, p.Form, w})
		}
	}
	return all
}

// KindsOf lists those of an architecture.
func KindsOf(arch string) (of []Kind) {
	for _, k := range Kinds() {
		if k.Arch == arch {
			of = append(of, k)
		}
	}
	return of
}

var unsafeInNames = regexp.MustCompile(`[^A-Za-z0-9]+`)

// Name is that of a kind's files: "9.6.6-arm64-static-thr".
func (k Kind) Name() string {
	form := strings.Trim(unsafeInNames.ReplaceAllString(string(k.Form), "-"), "-")
	return strings.Join([]string{k.Release, k.Arch, form, strings.TrimPrefix(string(k.Way), "rts_")}, "-")
}

// Said is what the run itself said beside the log.
type Said struct {
	Bytes       float64  // that +RTS -s, or the program, counts as allocated; 0 if nothing says it
	Collections int      // by +RTS -s
	Missing     []string `json:",omitempty"` // events that ccagent said are not available
}

// Seen is what ccview shows of a log.
type Seen struct {
	GHC                     string
	Way                     ghc.Way
	Samples                 int     // of CPU time
	Complete, Cut           int     // stacks of Haskell code that are walked to their root, and that are not
	Hottest, Place          string  // the binding with the most CPU time, and where it is written
	Share, Worker, Bytecode float64 // of the CPU time: of the hottest, below Main.worker, below bytecode
	Bytes                   float64
	Allocates               string // the binding that allocates most
	Collections, Created    int
	Workers                 int // threads that are labelled as seen's
	// Cells are the fewest Main.Cell of a census that has any: others have those of lists that were just used, and the one at the program's
	// end may have none.
	Censuses, Cells int
}

// Row is what is stored beside a log.
type Row struct {
	Kind      Kind
	Said      Said
	Seen      Seen
	Kilobytes int // of the log, compressed
}

var (
	allocated   = regexp.MustCompile(`([\d,]+) bytes allocated in the heap|allocated (\d+)`)
	collections = regexp.MustCompile(`Gen +\d+ +(\d+) colls`)
	missing     = regexp.MustCompile(`(?m)^ccagent: (\S+): (?:not available|no census)`)
)

// Hear reads what a recorded program and ccagent have printed.
func Hear(output string) (s Said, err error) {
	if m := allocated.FindStringSubmatch(output); m != nil {
		if _, err := fmt.Sscan(strings.ReplaceAll(m[1]+m[2], ",", ""), &s.Bytes); err != nil {
			return s, err
		}
	}
	for _, m := range collections.FindAllStringSubmatch(output, -1) {
		var n int
		if _, err := fmt.Sscan(m[1], &n); err != nil {
			return s, err
		}
		s.Collections += n
	}
	for _, m := range missing.FindAllStringSubmatch(output, -1) {
		s.Missing = append(s.Missing, m[1])
	}
	return s, nil
}

// View runs ccview with --format json, and decodes what it prints.
type View func(into any, args ...string) error

// Look asks ccview what it shows of a log.
func Look(view View, log string) (s Seen, err error) {
	var info struct {
		Modules []struct {
			GHC string `json:"ghc_version"`
			Way string
		}
		Stacks struct{ Complete, Truncated, Failed int }
		Events []struct {
			Name    string
			Samples int
			Weight  float64
		}
		RTS *struct {
			Collections int
			Created     int `json:"threads_created"`
			Censuses    int `json:"heap_samples"`
		}
	}
	if err := view(&info, "info", log); err != nil {
		return s, err
	}
	for _, m := range info.Modules { // the program need not be Haskell's itself
		if m.GHC != "" && m.Way != "" && s.GHC == "" {
			s.GHC, s.Way = m.GHC, ghc.Way(m.Way)
		}
	}
	s.Complete, s.Cut = info.Stacks.Complete, info.Stacks.Truncated+info.Stacks.Failed
	events := map[string]bool{}
	for _, e := range info.Events {
		events[e.Name] = e.Samples > 0
		switch e.Name {
		case "cpu-clock":
			s.Samples = e.Samples
		case "alloc":
			s.Bytes = e.Weight
		}
	}
	if r := info.RTS; r != nil {
		s.Collections, s.Created, s.Censuses = r.Collections, r.Created, r.Censuses
	}
	type hot struct {
		Rows []struct {
			Element, File, Span string
			Share, Inclusive    float64
		}
	}
	var cpu, alloc hot
	if err := view(&cpu, "hot", log, "--event", "cpu-clock"); err != nil {
		return s, err
	}
	for _, r := range cpu.Rows {
		switch r.Element {
		case "Main.worker":
			s.Worker = r.Inclusive
		case "(bytecode)":
			s.Bytecode = r.Inclusive
		}
		if s.Hottest == "" && !strings.HasPrefix(r.Element, "(") {
			s.Hottest, s.Share = r.Element, r.Share
			if line, _, _ := strings.Cut(r.Span, ":"); r.File != "" && line != "" {
				s.Place = r.File + ":" + line
			}
		}
	}
	if events["alloc"] {
		if err := view(&alloc, "hot", log, "--event", "alloc"); err != nil {
			return s, err
		}
		for _, r := range alloc.Rows {
			if !strings.HasPrefix(r.Element, "(") {
				s.Allocates = r.Element
				break
			}
		}
	}
	if s.Created > 0 {
		var dump struct{ Threads []struct{ Label string } }
		if err := view(&dump, "threads", log); err != nil {
			return s, err
		}
		for _, t := range dump.Threads {
			if strings.HasPrefix(t.Label, "worker ") {
				s.Workers++
			}
		}
	}
	if s.Censuses > 0 {
		var heap struct {
			Bands []struct {
				Band     string
				Closures []int
			}
		}
		if err := view(&heap, "heap", log); err != nil {
			return s, err
		}
		for _, b := range heap.Bands {
			if !strings.HasSuffix(b.Band, "Main.Cell") {
				continue
			}
			for _, n := range b.Closures {
				if n > 0 && (n < s.Cells || s.Cells == 0) {
					s.Cells = n
				}
			}
		}
	}
	return s, nil
}

// hasSymbols says whether a kind of program has a symbol table of its run-time system, by which collections, threads and the heap are
// found. Debian's shared libraries have none.
func hasSymbols(f ghc.Form) bool {
	switch f {
	case ghc.Stripped, ghc.MiniDebug, ghc.Shared, ghc.SharedPIE, ghc.Embedded, ghc.Interpreted:
		return false
	}
	return true
}

// Check compares what a log shows with what the run said and with what its program does, and says what differs.
func (r *Row) Check() (problems []string) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	form, said, seen := r.Kind.Form, &r.Said, &r.Seen
	if seen.GHC != r.Kind.Release || seen.Way.Linked() != r.Kind.Way {
		wrong("it is of GHC %s, %s", seen.GHC, seen.Way)
	}
	if seen.Samples < 30 || seen.Complete < 30 || float64(seen.Complete) < 0.99*float64(seen.Complete+seen.Cut) {
		wrong("%d samples; %d stacks are complete, %d are not", seen.Samples, seen.Complete, seen.Cut)
	}
	if hasSymbols(form) && len(said.Missing) > 0 {
		wrong("not available: %q", said.Missing)
	}
	if said.has("alloc") && said.Bytes > 0 && (seen.Bytes < 0.99*said.Bytes || seen.Bytes > 1.01*said.Bytes) {
		wrong("%.0f bytes were sampled, the run-time system counted %.0f", seen.Bytes, said.Bytes)
	}
	if said.has("gc") && seen.Collections != said.Collections {
		wrong("%d collections, the run-time system counted %d", seen.Collections, said.Collections)
	}
	switch form {
	case ghc.Embedded:
		if seen.Hottest != "Embedded.heavy" || seen.Place == "" {
			wrong("most CPU time is in %q, %q", seen.Hottest, seen.Place)
		}
		return problems
	case ghc.Interpreted:
		if seen.Bytecode < 0.05 {
			wrong("%.3f of the CPU time is below bytecode", seen.Bytecode)
		}
		return problems
	case ghc.Stripped, ghc.MiniDebug, ghc.SharedPIE:
		// Code that is not exported has its module alone, or one that is linked after it: Main is linked first.
		if !strings.Contains(seen.Hottest, "Main") && !strings.HasPrefix(seen.Hottest, "up to ") {
			wrong("most CPU time is in %q", seen.Hottest)
		}
	default:
		if seen.Hottest != "Main.spin" || seen.Worker < seen.Share {
			wrong("most CPU time is in %q, %.3f; below Main.worker are %.3f", seen.Hottest, seen.Share, seen.Worker)
		}
		if !strings.HasPrefix(seen.Place, "Main.hs:") {
			wrong("%s is written at %q", seen.Hottest, seen.Place)
		}
		if said.has("alloc") && seen.Allocates != "Main.cells" {
			wrong("most bytes are of %q", seen.Allocates)
		}
	}
	if said.has("threads") && seen.Workers != workers {
		wrong("%d threads are labelled", seen.Workers)
	}
	if said.has("heap") && seen.Cells != cells {
		wrong("%d cells in %d censuses", seen.Cells, seen.Censuses)
	}
	return problems
}

// has says whether an event was available.
func (s *Said) has(event string) bool { return !slices.Contains(s.Missing, event) }

// Read gives what a log that was recorded of a kind of program shows, and what its run printed said.
func Read(view View, k Kind, log, output string) (*Row, error) {
	said, err := Hear(output)
	if err != nil {
		return nil, err
	}
	seen, err := Look(view, log)
	if err != nil {
		return nil, err
	}
	return &Row{Kind: k, Said: said, Seen: seen}, nil
}

// Record checks a log that was recorded of a kind of program, and stores it in the module that is at root.
func Record(view View, root string, k Kind, log, output string) error {
	r, err := Read(view, k, log, output)
	if err != nil {
		return err
	}
	if problems := r.Check(); len(problems) > 0 {
		return fmt.Errorf("%s: %s", k.Name(), strings.Join(problems, "; "))
	}
	data, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	r.Kilobytes = (packed.Len() + 1023) / 1024
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	name := filepath.Join(root, Folder, k.Name())
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(name+".eventlog.gz", packed.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(name+".json", append(text, '\n'), 0o644)
}

// Stored gives what is stored of a kind of program in the module that is at root, nil if nothing is.
func Stored(root string, k Kind) (*Row, error) {
	data, err := os.ReadFile(filepath.Join(root, Folder, k.Name()+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &Row{}
	return r, json.Unmarshal(data, r)
}

// Unpack writes a stored log into a folder, and gives its path.
func Unpack(root string, k Kind, dir string) (path string, err error) {
	f, err := os.Open(filepath.Join(root, Folder, k.Name()+".eventlog.gz"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(z, maxLog))
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, k.Name()+".eventlog")
	return path, os.WriteFile(path, data, 0o600)
}
