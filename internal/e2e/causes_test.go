package e2e

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// Wortmann & Duke 2013, section 2: the loop that GHC makes of foldr (*) 1 [1 .. n] is
// attributed to the line in the source, although GHC lifts it out without its source notes.
func TestFusedLoopBelongsToItsLine(t *testing.T) {
	log, _ := record(t, []string{"--max-overhead", "0"}, testprog.Build(t, "fac", testprog.Options{}), "1000", "200000")
	l := readLog(t, log)
	l.wantWhole(t)
	n := 0
	for _, s := range l.samples {
		if inHaskell(s) {
			n++
		}
	}
	h := hotOf(t, log)
	wantShareAbove(t, "Main.fac of Haskell code", h.element(t, "Main.fac").Samples, n, 0.95)
	var line hotJSON
	view(t, &line, "hot", log, "--level", "span")
	for _, r := range line.Rows {
		if strings.HasPrefix(r.Element, "Main.hs:29:1-") {
			wantShareAbove(t, "line 29 of Haskell code", r.Samples, n, 0.95)
			return
		}
	}
	t.Errorf("no span begins where fac does: %+v", line.Rows)
}

// The loop of a fused pipeline has causes in both modules in one block; hot shows them as an
// overlap instead of choosing one.
func TestFusionOverlaps(t *testing.T) {
	log, _ := record(t, []string{"--max-overhead", "0"}, testprog.Build(t, "fusion", testprog.Options{}), "1000", "200000")
	l := readLog(t, log)
	l.wantWhole(t)

	// By the log's own tables: samples whose leaf block has spans of both files.
	both, either := 0, 0
	for _, s := range l.samples {
		frames := l.frames(s)
		if len(frames) == 0 || !inHaskell(s) {
			continue
		}
		files := l.causeFiles(frames[0])
		if files["Main.hs"] || files["Stream.hs"] {
			either++
		}
		if files["Main.hs"] && files["Stream.hs"] {
			both++
		}
	}
	wantShareAbove(t, "samples with causes in both files", both, either, 0.9)

	// By hot, both modules have nearly all of it, and neither has much alone.
	h := hotOf(t, log, "--level", "module")
	main, stream := h.element(t, "Main"), h.element(t, "Stream")
	if stream.Samples != both {
		t.Errorf("hot counts %d samples for Stream, the log's causes %d", stream.Samples, both)
	}
	if main.Share+stream.Share < 1.5 {
		t.Errorf("Main has %.3f and Stream %.3f: that does not overlap", main.Share, stream.Share)
	}
	if stream.Only != 0 || main.Only > main.Share-stream.Share+1e-9 {
		t.Errorf("only Main %.3f, only Stream %.3f, of %.3f and %.3f", main.Only, stream.Only, main.Share, stream.Share)
	}
	wantConsistent(t, h)
	wantConsistent(t, hotOf(t, log))
	wantConsistent(t, hotOf(t, log, "--level", "span"))
}

// Code of a library function that was specialised at its use has two causes: the function,
// and the binding that uses it.
func TestSpecialisedCodeHasTwoCauses(t *testing.T) {
	log, _ := record(t, []string{"--max-overhead", "0"}, testprog.Build(t, "maps", testprog.Options{}), "100000", "2")
	h := hotOf(t, log)
	for _, r := range h.Rows {
		if name := r.Element[strings.LastIndexByte(r.Element, '.')+1:]; strings.HasPrefix(name, "$") {
			t.Errorf("hot shows %q, which nobody wrote", r.Element)
		}
	}
	grow, insert := h.element(t, "Main.grow"), h.element(t, "Main.insertWith (specialised)")
	if insert.Samples == 0 || grow.Samples < insert.Samples {
		t.Errorf("insertWith has %d samples, grow, which alone uses it, %d", insert.Samples, grow.Samples)
	}
	if insert.Only != 0 {
		t.Errorf("insertWith has %.3f to itself", insert.Only)
	}
	wantConsistent(t, h)

	// The library itself has no notes: doctor reports that, with the remedy.
	r := run(t, command(t, ccview, "doctor", log))
	words := strings.Join(strings.Fields(r.stdout), " ") // lines are wrapped to a page
	if want := regexp.MustCompile(`source notes [0-9.]+% of [^%]* is in package containers-[0-9.]+, which has none`); !want.MatchString(words) {
		t.Errorf("doctor does not say %s:\n%s", want, r.stdout)
	}
	wantLine(t, r.stdout, "package containers")
	wantLine(t, r.stdout, "ghc-options: -g3")
}

// causeFiles are the files of the spans in a node's cause set.
func (l *capturedLog) causeFiles(n eventlog.Node) map[string]bool {
	files := map[string]bool{}
	for _, c := range l.blocks[l.locations[place{n.Module, n.Addr}].Block].Causes {
		files[l.files[l.spans[c.Span].File].Path] = true
	}
	return files
}

// wantConsistent checks that the figures that hot shows agree with each other.
func wantConsistent(t *testing.T, h *hotJSON) {
	t.Helper()
	sum := 0.0
	for _, r := range h.Rows {
		sum += r.Share
		if !(0 <= r.Only && r.Only <= r.Share && r.Share <= r.Inclusive && r.Inclusive <= 1+1e-9) {
			t.Errorf("%s: only %.4f, share %.4f, inclusive %.4f", r.Element, r.Only, r.Share, r.Inclusive)
		}
	}
	if sum < 1-1e-9 || math.IsNaN(sum) {
		t.Errorf("the shares at level %s sum to %.4f: something is not attributed", h.Level, sum)
	}
}

// If the build left its Core dumps, the log has the Core of the code that ran: the fused
// loop, with its samples on the lines that the notes name, and each only once.
func TestCoreBesideSource(t *testing.T) {
	testprog.NeedRoot(t)
	dir := t.TempDir()
	inputs := testprog.CopySource(t, "fusion", dir)
	testprog.Compile(t, "", dir, append([]string{"-v0", "-O2", "-g3", "-ddump-simpl", "-ddump-to-file", "-dsuppress-all", "-dno-suppress-ticks",
		"-outputdir", "dist-newstyle/build", "-o", "fusion"}, inputs...)...)
	log, _ := record(t, []string{"--max-overhead", "0"}, filepath.Join(dir, "fusion"), "1000", "100000")
	if err := os.RemoveAll(dir); err != nil { // what follows is the log's own
		t.Fatal(err)
	}
	var core struct {
		Problem  string
		Bindings []struct {
			Binding, Binder string
			Share, With     float64
			Lines           []struct {
				Text    string
				Samples int
				Share   float64
				Of      bool
			}
		}
	}
	view(t, &core, "source", "--core", log, "Stream.upTo")
	if len(core.Bindings) == 0 {
		t.Fatalf("no Core: %s", core.Problem)
	}
	loop := core.Bindings[0]
	share := hotOf(t, log).element(t, "Main.sumOfSquares").Share
	if !strings.Contains(loop.Binder, "sumOfSquares") || math.Abs(loop.With-share) > 0.05 {
		t.Errorf("the Core with most of upTo is %s, with %.3f; sumOfSquares has %.3f", loop.Binder, loop.With, share)
	}
	sum, marked := 0.0, 0.0
	for _, l := range loop.Lines {
		if l.Samples > 0 && strings.TrimSpace(l.Text) == "" {
			t.Error("an empty line has samples")
		}
		sum += l.Share
		if l.Of {
			marked += l.Share
		}
	}
	// A line that was copied counts its samples in each copy, so the sum may be larger.
	if sum < loop.Share-1e-9 || marked < 0.5*loop.Share {
		t.Errorf("of %.3f the lines have %.3f, those made from upTo %.3f", loop.Share, sum, marked)
	}
}
