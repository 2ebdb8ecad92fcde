package census

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ccagent/internal/testprog"
)

// matrixPrograms keep different kinds of closures, and run until they are interrupted.
var matrixPrograms = []struct {
	name string
	args []string
}{
	{"retain", []string{"4000", "100000000"}},
	{"maps", []string{"50000", "1000000"}},
	{"owners", []string{"20000"}},
	{"grow", []string{"500", "1000000", "2000"}},
	{"footprint", []string{"compact", "20"}},
	{"server", []string{"100000000"}},
	{"classic", []string{"binary-trees", "28"}},
	{"stm", []string{"1000000"}},
	{"deep", []string{"thunks", "50000", "1000000"}},
	{"example", []string{"5000000"}},
}

// configuration is how programs are built, run, and stopped for a census.
type configuration struct {
	release, ways string // "": 9.0.2; "threaded", "prof", "dynamic"
	rts           string
	pause         time.Duration
}

// matrixRows were chosen before any of them was measured.
var matrixRows = []configuration{
	{},
	{rts: "-G1"},
	{rts: "-G3"},
	{rts: "-c"},
	{rts: "-A256k"},
	{rts: "-A16m"},
	{rts: "--nonmoving-gc"},
	{rts: "-A16m", pause: 5 * time.Millisecond},
	{ways: "threaded"},
	{ways: "threaded", rts: "-N2"},
	{ways: "threaded", rts: "-N2 -qg"},
	{ways: "threaded", rts: "-N2 -A16m -n4m"},
	{ways: "prof"},
	{ways: "dynamic"},
	{ways: "threaded", pause: 5 * time.Millisecond},
	{ways: "threaded", rts: "-N2 -A16m", pause: 5 * time.Millisecond},
	{release: "9.6.6", ways: "threaded", rts: "-A16m", pause: 5 * time.Millisecond},
	{release: "9.10.3", ways: "threaded", rts: "-N2 -A16m", pause: 5 * time.Millisecond},
	{release: "9.6.6", ways: "threaded"},
	{release: "9.6.6", ways: "threaded", rts: "-N2"},
	{release: "9.6.6", ways: "threaded", rts: "-c"},
	{release: "9.6.6", ways: "threaded", rts: "-G3 -N2"},
	{release: "9.6.6", ways: "prof"},
	{release: "9.10.3", ways: "threaded"},
	{release: "9.10.3", ways: "threaded", rts: "-N2"},
	{release: "9.10.3", ways: "threaded", rts: "-c"},
	{release: "9.10.3", ways: "threaded", rts: "-G3 -N2"},
	{release: "9.10.3", ways: "prof"},
}

func (c configuration) String() string {
	name := c.release
	if name == "" {
		name = "9.0.2"
	}
	for _, s := range []string{c.ways, c.rts} {
		if s != "" {
			name += " " + s
		}
	}
	if c.pause > 0 {
		name += " " + c.pause.String()
	}
	return name
}

// compared is one census beside the run-time system's own of the same collection.
type compared struct {
	Row, Program  string
	Refused       string // why there is none
	Bands, Differ int
	Bytes, Error  uint64
	Margin        uint64 // of bands that were estimated
	PauseNs       int64
	Beside        bool
	Drawn         *Draw // of which the margins are left out
	Large, Held   int   // as of a result
	Which         []string
}

// matrixFolder has what was measured, a file a census.
const matrixFolder = "../../.cache/heap"

func needMatrix(t *testing.T, command string) {
	t.Helper()
	if os.Getenv("CCAGENT_MATRIX") == "" {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "an hour", Hint: command})
	}
}

// TestHeapMatrix compares censuses of ten programs with the run-time system's own, band by band. Those of a whole heap, taken while the program
// stood, are to be the same to the byte.
func TestHeapMatrix(t *testing.T) {
	needMatrix(t, "scripts/bench heap")
	if err := os.MkdirAll(matrixFolder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range matrixRows {
		t.Run(strings.ReplaceAll(c.String(), " ", "_"), func(t *testing.T) {
			for _, p := range matrixPrograms {
				t.Run(p.name, func(t *testing.T) {
					s := situation{program: p.name, args: p.args, rts: c.rts, collections: 20, options: testprog.Options{
						Release: c.release, Threaded: c.ways == "threaded", Prof: c.ways == "prof", Dynamic: c.ways == "dynamic",
					}}
					row := compared{Row: c.String(), Program: p.name}
					res, err := tryCensus(t, s, Options{Wait: time.Minute, MaxPause: c.pause})
					if errors.Is(err, ErrNonmoving) {
						err = errors.New("the run-time system takes none with --nonmoving-gc; TestRetainedWithoutMoving compares ours with arithmetic")
					}
					if err != nil {
						row.Refused = err.Error()
					} else {
						row.Bands, row.Differ, row.Bytes, row.Error, row.Margin = res.bands, res.differ, res.bytes, res.error, res.margin
						row.PauseNs, row.Beside, row.Drawn, row.Which = int64(res.pause), res.manner == Beside, res.drawn, res.which
						row.Large, row.Held = res.large, res.held
						if row.Drawn != nil {
							row.Drawn.Margins, row.Drawn.Kinds = nil, nil // their sum is enough
						}
						if res.manner == Exact && res.differ > 0 {
							t.Errorf("of a census of the whole heap, taken while the program stood, %d bands differ by %d bytes: %q", res.differ, res.error, res.which)
						}
					}
					t.Logf("%+v", row)
					data, err := json.Marshal(row)
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(matrixFolder, strings.ReplaceAll(c.String()+" "+p.name, " ", "_")+".json"), data, 0o644); err != nil {
						t.Fatal(err)
					}
				})
			}
		})
	}
}

// matrixMark is the line in docs/memory.md behind which TestHeapTable puts its table, up to matrixEnd.
const (
	matrixMark = "<!-- scripts/bench heap -->\n"
	matrixEnd  = "<!-- end of scripts/bench heap -->\n"
)

// TestHeapTable writes a part of docs/memory.md from the results in matrixFolder.
func TestHeapTable(t *testing.T) {
	needMatrix(t, "scripts/bench heap table")
	const path = "../../docs/memory.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := bytes.Cut(text, []byte(matrixMark))
	_, tail, ended := bytes.Cut(rest, []byte(matrixEnd))
	if !found || !ended {
		t.Fatalf("%s has no lines %q and %q", path, matrixMark, matrixEnd)
	}
	files, err := filepath.Glob(filepath.Join(matrixFolder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]compared{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var r compared
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		rows[r.Row] = append(rows[r.Row], r)
	}
	var table strings.Builder
	table.WriteString("\n| GHC, way and flags | Programs | Equal | Bands | Of these differ | Live, MB | Largest error | Stopped, ms |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, c := range matrixRows {
		if r := rows[c.String()]; r != nil {
			table.WriteString(matrixLine(c.String(), r))
		}
	}
	for _, c := range matrixRows {
		for _, line := range exceptions(rows[c.String()]) {
			table.WriteString("\n- " + c.String() + ", " + line)
		}
	}
	table.WriteString("\n")
	if err := os.WriteFile(path, slices.Concat(head, []byte(matrixMark), []byte(table.String()), []byte("\n"+matrixEnd), tail), 0o644); err != nil {
		t.Fatal(err)
	}
	fmt.Print(table.String())
}

// exceptions says of which programs of a row there is no census, and which bands differ.
func exceptions(all []compared) (lines []string) {
	refused := map[string][]string{} // programs, by why
	for _, r := range all {
		switch {
		case r.Refused != "":
			refused[r.Refused] = append(refused[r.Refused], r.Program)
		case r.Drawn != nil && r.Differ > 0:
			lines = append(lines, fmt.Sprintf("%s: %d of %d megablocks were drawn; all bands are %.3g %% off together, and their intervals reach %.3g %%; of the %d with a hundredth of the heap or more, %d have the truth in their interval",
				r.Program, r.Drawn.Drawn, r.Drawn.Megablocks, 100*float64(r.Error)/float64(r.Bytes), 100*float64(r.Margin)/float64(r.Bytes), r.Large, r.Held))
		case r.Differ > 0:
			lines = append(lines, fmt.Sprintf("%s: %s", r.Program, strings.Join(r.Which, "; ")))
		}
	}
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		programs := refused[why]
		of := strings.Join(programs, ", ")
		if len(programs) == len(all) {
			of = "all programs"
		}
		lines = append(lines, of+": no census: "+why)
	}
	return lines
}

// matrixLine is a row's line of the table.
func matrixLine(name string, all []compared) string {
	var equal, bands, differ int
	least, most := ^uint64(0), uint64(0)
	var worst float64
	shortest, longest := time.Duration(1<<62), time.Duration(0)
	for _, r := range all {
		if r.Refused != "" {
			continue
		}
		if r.Differ == 0 {
			equal++
		}
		bands += r.Bands
		differ += r.Differ
		least, most = min(least, r.Bytes), max(most, r.Bytes)
		worst = max(worst, float64(r.Error)/float64(r.Bytes))
		shortest, longest = min(shortest, time.Duration(r.PauseNs)), max(longest, time.Duration(r.PauseNs))
	}
	if bands == 0 {
		return fmt.Sprintf("| %s | %d | no census | | | | | |\n", name, len(all))
	}
	off := "0"
	if worst > 0 {
		off = fmt.Sprintf("%.3g %%", 100*worst)
	}
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %.1f to %.1f | %s | %.1f to %.1f |\n",
		name, len(all), equal, bands, differ, float64(least)/1e6, float64(most)/1e6, off, shortest.Seconds()*1e3, longest.Seconds()*1e3)
}
