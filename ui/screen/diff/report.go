package diff

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile/diff"
	"ccagent/ui/printer"
)

// listed is the number of rows printed where nothing else is asked for.
const listed = 30

// Report is a comparison.
type Report struct {
	Result *diff.Result
	// All prints every row, not only those that differ or, without a test, the largest.
	All bool
}

// Text implements printer.Report.
func (d Report) Text(w io.Writer, o printer.Options) error {
	r := d.Result
	p := newOut(w, o)
	tested := r.Method != diff.NoTest
	unit := r.A[0].Unit
	p.Wrap(p.Bold, "   ", "A "+group(r.A), "B "+group(r.B), printer.Fit(r.A[0].Title, 40)+" by "+r.A[0].Level.String()+", "+what(r))
	p.diffTotal(r, tested)
	p.Line("")

	rows := r.Rows
	if !d.All {
		rows = worthPrinting(r, tested)
	}
	n := o.Rows(len(rows), listed)
	if n > 0 {
		head := printer.PadLeft("A", 10) + printer.PadLeft("B", 11) + printer.PadLeft("delta", 11) + printer.PadLeft("", 8)
		if p.Wide() {
			head += printer.PadLeft("±95%", 10)
		}
		if tested {
			head += printer.PadLeft("p", 8) + "  " + printer.PadRight("verdict", 9)
		}
		p.Line(p.Bold(head + "  " + r.A[0].Level.String()))
	}
	for i := range rows[:n] {
		p.diffRow(&rows[i], r.Options.Normalise, unit, tested)
	}
	if rest := len(rows) - n; rest > 0 {
		p.Line(p.Faint(fmt.Sprintf("%s more: --top 0 prints all", format.Plural(uint64(rest), "row"))))
	}
	p.diffNotes(r, len(rows), tested, d.All)
	return p.Flush()
}

// group names a side's logs.
func group(runs []*diff.Run) string {
	name := printer.Fit(filepath.Base(runs[0].Name), 40)
	if len(runs) > 1 {
		name += fmt.Sprintf(" … ×%d", len(runs))
	}
	return name
}

func what(r *diff.Result) string {
	s := map[diff.Metric]string{
		diff.ByShare: "shared samples", diff.ByOnly: "unshared samples", diff.ByInclusive: "samples with it on the stack",
	}[r.Options.Metric]
	if r.Options.Normalise == diff.Share {
		return s + ", parts of the total"
	}
	return s
}

func (p out) diffTotal(r *diff.Result, tested bool) {
	t := &r.Total
	unit := r.A[0].Unit
	line := fmt.Sprintf("total %s → %s  %s", Figure(t.A.Mean, diff.None, unit), Figure(t.B.Mean, diff.None, unit), Relative(t))
	if tested {
		line += fmt.Sprintf("  p=%s  %s", PValue(t.P), t.Verdict)
	}
	var a, b uint64
	for _, run := range r.A {
		a += run.Duration
	}
	for _, run := range r.B {
		b += run.Duration
	}
	p.Wrap(func(s string) string { return s }, "   ", line,
		fmt.Sprintf("lasted %s → %s", format.Duration(a/uint64(len(r.A))), format.Duration(b/uint64(len(r.B)))),
		fmt.Sprintf("samples %s → %s", format.Count(t.A.Samples), format.Count(t.B.Samples)))
}

// worthPrinting are the rows that show a difference; without a test those that
// are not small on both sides.
func worthPrinting(r *diff.Result, tested bool) []diff.Row {
	var out []diff.Row
	scale := 1.0
	if r.Options.Normalise == diff.None {
		scale = max(r.Total.A.Mean, r.Total.B.Mean)
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Verdict.Significant() || !tested && row.Delta != 0 && max(row.A.Mean, row.B.Mean) >= diff.MinShare*scale {
			out = append(out, *row)
		}
	}
	return out
}

func (p out) diffRow(r *diff.Row, norm diff.Normalise, unit string, tested bool) {
	left := printer.PadLeft(Figure(r.A.Mean, norm, unit), 10) + printer.PadLeft(Figure(r.B.Mean, norm, unit), 11) +
		printer.PadLeft(Change(r.Delta, norm, unit), 11) + printer.PadLeft(Relative(r), 8)
	used := 42
	if p.Wide() {
		left += printer.PadLeft("±"+strings.TrimPrefix(Change((r.High-r.Low)/2, norm, unit), "+"), 10)
		used += 10
	}
	if tested {
		left += printer.PadLeft(PValue(r.Adjusted), 8) + "  "
		used += 19
		verdict := printer.PadRight(string(r.Verdict), 9)
		switch r.Verdict {
		case diff.Slower, diff.More:
			verdict = p.Style("31", verdict)
		case diff.Faster, diff.Less:
			verdict = p.Style("32", verdict)
		case diff.Moved:
		case diff.Same:
			verdict = p.Faint(printer.PadRight("~", 9))
		default:
			verdict = p.Faint(printer.PadRight("small", 9))
		}
		left += verdict
	}
	note := ""
	switch {
	case !r.InA:
		note = "  only in B"
	case !r.InB:
		note = "  only in A"
	}
	if r.Caller != "" {
		note += "  within " + printer.Fit(r.Caller, 40)
	}
	room := 0
	if p.Width > 0 {
		room = max(12, p.Columns()-used-len(note))
	}
	p.Line(left, "  ", printer.Fit(r.Name, room), p.Faint(note))
}

// diffNotes says what the figures rest on.
func (p out) diffNotes(r *diff.Result, rows int, tested, all bool) {
	p.Line("")
	if !tested {
		p.Note("n=%d+%d: no test. One run says nothing about how runs differ: ± is the noise of sampling alone (95%%), and runs differ by more. Record several of each, ccview diff A1,A2,A3,A4 B1,B2,B3,B4.", len(r.A), len(r.B))
		return
	}
	if r.Tested > 0 && r.Whole <= r.Options.Alpha {
		p.Note("The profiles differ: p=%s that no element does.", PValue(r.Whole))
	} else if r.Tested > 0 {
		p.Note("The profiles do not differ beyond noise: p=%s that no element does.", PValue(r.Whole))
	}
	for i := range r.Rows {
		if r.Rows[i].Verdict == diff.Moved {
			p.Note("moved: another element of the same caller makes up for it, so that the caller costs what it did.")
			break
		}
	}
	if rows == 0 {
		p.Note("No element's difference is significant: --all prints them.")
	}
	how := string(r.Method)
	switch r.Method {
	case diff.Permutation:
		how = fmt.Sprintf("exact permutation test (%d ways to deal the runs)", r.Dealings)
	case diff.RandomDeal:
		how = fmt.Sprintf("permutation test (%s random ways to deal the runs)", format.Count(uint64(r.Dealings)))
	case diff.WelchHolm:
		how = "Welch's t, which takes the logarithms of runs to vary normally: too few for a permutation test, 4+4 is enough"
	}
	p.Note("n=%d+%d, %s. p is adjusted for %s: the chance of any false verdict is at most %g%%. ± is of the same test: it leaves out 0 where there is a verdict.",
		len(r.A), len(r.B), how, format.Plural(uint64(r.Tested), "element"), 100*r.Options.Alpha)
	if r.Options.Normalise == diff.Share {
		p.Note("Parts of a total are tied together: where one grows, others shrink.")
	}
}

type diffJSON struct {
	Event     *string       `json:"event"`
	Unit      *string       `json:"unit"`
	Level     string        `json:"level"`
	Metric    string        `json:"metric"`
	Normalise string        `json:"normalise"`
	ATotal    float64       `json:"a_total"`
	BTotal    float64       `json:"b_total"`
	Total     diffRowJSON   `json:"total"`
	A         []diffRunJSON `json:"a_runs"`
	B         []diffRunJSON `json:"b_runs"`
	Method    string        `json:"method"`
	Alpha     float64       `json:"alpha"`
	Tested    int           `json:"tested"`
	// Whole is the p-value of no element's differing; null where there is no test.
	Whole *float64      `json:"whole_p"`
	Rows  []diffRowJSON `json:"rows"`
}

type diffRunJSON struct {
	File     string   `json:"file"`
	Samples  uint64   `json:"samples"`
	Total    float64  `json:"total"`
	Duration *float64 `json:"duration_seconds"`
	Granted  *string  `json:"granted"`
}

type diffRowJSON struct {
	Element  string    `json:"element"`
	Kind     *string   `json:"kind"`
	File     *string   `json:"file"`
	Span     *string   `json:"span"`
	Module   *string   `json:"module"`
	A        float64   `json:"a"`
	B        float64   `json:"b"`
	Delta    float64   `json:"delta"`
	Ratio    *float64  `json:"ratio"` // null for what A has none of
	Low      float64   `json:"low"`
	High     float64   `json:"high"`
	P        *float64  `json:"p"` // null where there is no test
	Adjusted *float64  `json:"p_adjusted"`
	Verdict  *string   `json:"verdict"`
	Caller   *string   `json:"moved_within"` // null unless the verdict is "moved"
	In       string    `json:"in"`
	ASamples uint64    `json:"a_samples"`
	BSamples uint64    `json:"b_samples"`
	ARuns    []float64 `json:"a_values"`
	BRuns    []float64 `json:"b_values"`
}

// JSON implements printer.Report: all rows of the comparison.
func (d Report) JSON(w io.Writer, o printer.Options) error {
	r := d.Result
	doc := diffJSON{
		Event: printer.Known(r.A[0].Event), Unit: printer.Known(r.A[0].Unit), Level: r.A[0].Level.String(), Metric: r.Options.Metric.String(),
		Normalise: r.Options.Normalise.String(), ATotal: r.Total.A.Mean, BTotal: r.Total.B.Mean, Total: diffRowOf(&r.Total),
		A: diffRuns(r.A), B: diffRuns(r.B), Method: string(r.Method), Alpha: r.Options.Alpha, Tested: r.Tested, Whole: number(r.Whole), Rows: []diffRowJSON{},
	}
	for i := range r.Rows[:o.Rows(len(r.Rows), len(r.Rows))] {
		doc.Rows = append(doc.Rows, diffRowOf(&r.Rows[i]))
	}
	return printer.JSON(w, doc)
}

func diffRuns(runs []*diff.Run) []diffRunJSON {
	out := []diffRunJSON{}
	for _, r := range runs {
		out = append(out, diffRunJSON{r.Name, r.Samples, r.Total, printer.Known(float64(r.Duration) / 1e9), printer.Known(r.Granted)})
	}
	return out
}

// number is a JSON number, null for what is none.
func number(f float64) *float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

func diffRowOf(r *diff.Row) diffRowJSON {
	in := "both"
	switch {
	case !r.InA:
		in = "b"
	case !r.InB:
		in = "a"
	}
	return diffRowJSON{
		Element: r.Name, Kind: printer.Known(r.Kind), File: printer.Known(r.File), Span: printer.Known(r.Span.String()), Module: printer.Known(r.Module),
		A: r.A.Mean, B: r.B.Mean, Delta: r.Delta, Ratio: number(r.Ratio), Low: r.Low, High: r.High,
		P: number(r.P), Adjusted: number(r.Adjusted), Verdict: printer.Known(string(r.Verdict)), Caller: printer.Known(r.Caller), In: in,
		ASamples: r.A.Samples, BSamples: r.B.Samples, ARuns: r.A.Runs, BRuns: r.B.Runs,
	}
}

// out is a printer with what only these reports have.
type out struct{ *printer.Printer }

func newOut(w io.Writer, o printer.Options) out { return out{printer.New(w, o)} }
