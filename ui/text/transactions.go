package text

import (
	"fmt"
	"math"
	"strings"

	"ccagent/eventlog"
	"ccagent/internal/format"
	"ccagent/internal/transactions"
	"ccagent/profile"
	"ccagent/profile/conflicts"
	"ccagent/profile/interval"
	"ccagent/ui/printer"
)

// InTransactions is which part of the CPU time was inside of transactions, by so many samples of it; of no samples
// it is not known.
type InTransactions struct {
	Share   float64
	Samples uint64
}

// estimate is the share with its interval.
func (i InTransactions) estimate() transactions.Estimate {
	n := float64(i.Samples)
	low, high := interval.Binomial(i.Share*n, n)
	return transactions.Estimate{Value: i.Share, Low: low, High: high}
}

// thrownAway is which part of all CPU time was in attempts to run transactions whose work was thrown away; false if it is
// not known.
func thrownAway(t *transactions.Totals, inside InTransactions) (transactions.Estimate, bool) {
	of, known := t.CPUShare(eventlog.TransactionFailed)
	if !known || inside.Samples == 0 {
		return transactions.Estimate{}, false
	}
	in := inside.estimate()
	p := in.Value * of.Value
	// The two are independent: their relative errors add up as squares do.
	down := math.Hypot(of.Value*(in.Value-in.Low), in.Value*(of.Value-of.Low))
	up := math.Hypot(of.Value*(in.High-in.Value), in.Value*(of.High-of.Value))
	return transactions.Estimate{Value: p, Low: max(p-down, 0), High: min(p+up, 1)}, true
}

// Transactions says in words how attempts to run transactions ended, and what they cost.
func Transactions(t *transactions.Totals, inside InTransactions) []string {
	counts := func(of func() transactions.Estimate) string {
		e := of()
		s := format.Count(uint64(e.Value + 0.5))
		if !t.Exact() {
			s += fmt.Sprintf(" (%s to %s)", format.Count(uint64(e.Low)), format.Count(uint64(e.High)))
		}
		return s
	}
	started := t.Started()
	var ends []string
	for end := range eventlog.TransactionEnds {
		s := counts(func() transactions.Estimate { return t.Attempts(end) }) + " " + endWords[end]
		if end == eventlog.TransactionFailed && started.Value > 0 {
			s += ", " + format.Percent(t.Attempts(end).Value/started.Value)
		}
		ends = append(ends, s)
	}
	how := "all were counted"
	if !t.Exact() {
		how = fmt.Sprintf("counted in %s of %s of CPU time, in %s", format.Duration(t.LengthNs), format.Duration(t.StandsNs), format.Plural(uint64(t.Windows), "window"))
	}
	lines := []string{fmt.Sprintf("%s attempts: %s; %s", counts(t.Started), strings.Join(ends, ", "), how)}
	if inside.Samples == 0 {
		return lines
	}
	in := inside.estimate()
	s := fmt.Sprintf("%s %s of the CPU time is inside of transactions", format.Percent(in.Value), plusMinus(in))
	if !t.Exact() {
		s += fmt.Sprintf(", by %s of CPU time (those of stm-cpu are of the windows: they say how attempts end, and less surely how much it is)", format.Plural(inside.Samples, "sample"))
	}
	if of, known := t.CPUShare(eventlog.TransactionFailed); known {
		all, _ := thrownAway(t, inside)
		s += fmt.Sprintf("; of that, %s %s is in attempts that failed: %s %s of all was thrown away", format.Percent(of.Value), plusMinus(of), format.Percent(all.Value), plusMinus(all))
	} else if t.Noted > 0 {
		s += "; how those attempts ended is not known"
	}
	if u := t.Unknown(); u > 0 {
		s += fmt.Sprintf(" (the end of %s of those that were sampled was not seen)", format.Percent(u))
	}
	return append(lines, s)
}

// endWords are what is said of a number of attempts.
var endWords = [eventlog.TransactionEnds]string{"committed", "failed validation", "retried", "by an exception"}

// plusMinus is half an interval, in points.
func plusMinus(e transactions.Estimate) string {
	return fmt.Sprintf("±%.1f", 100*max(e.High-e.Value, e.Value-e.Low))
}

// insideOf is what a log's samples of CPU time say.
func insideOf(p *profile.Profile) InTransactions {
	for i := range p.Events {
		if e := &p.Events[i]; e.InTransactions > 0 || e.CPU() && e.Weight > 0 {
			return InTransactions{format.Ratio(e.InTransactions, e.Weight), e.Samples}
		}
	}
	return InTransactions{}
}

func (p out) transactions(pr *profile.Profile) {
	if pr.Transactions.Windows == 0 {
		return
	}
	for i, line := range Transactions(&pr.Transactions, insideOf(pr)) {
		p.field([]string{"stm", "stm CPU"}[i], line)
	}
	if c := conflicts.Of(pr); c != nil {
		for i, line := range conflictLines(c) {
			name := ""
			if i == 0 {
				name = "stm fails"
			}
			p.field(name, line)
		}
	}
}

// mostPlaces bounds the variables that are listed.
const mostPlaces = 5

// conflictLines say in words which variables make transactions fail.
func conflictLines(c *conflicts.Conflicts) []string {
	lines := []string{fmt.Sprintf("because of what had changed, in %s %s of the attempts that failed, by %s:",
		format.Percent(c.Known.Value), plusMinus(transactions.Estimate(c.Known)), format.Plural(uint64(c.Samples), "sampled attempt"))}
	if len(c.Places) == 0 {
		return []string{fmt.Sprintf("because of what is not known, by %s", format.Plural(uint64(c.Samples), "sampled attempt"))}
	}
	for _, p := range c.Places[:min(mostPlaces, len(c.Places))] {
		s := fmt.Sprintf("%s %s  %s variable of %s, at %#x", format.Percent(p.Share.Value), plusMinus(transactions.Estimate(p.Share)),
			ordinal(p.Place), inCode(p.Code), p.Addresses[0].Address)
		if n := len(p.Addresses) - 1; n > 0 {
			s += " and " + format.Plural(uint64(n), "other place")
		}
		if len(p.Writers) > 0 {
			s += fmt.Sprintf("; %s of the writes seen are by %s", format.Percent(p.Writers[0].Share), inCode(p.Writers[0].Code))
		}
		lines = append(lines, s)
	}
	if n := len(c.Places) - mostPlaces; n > 0 {
		lines = append(lines, fmt.Sprintf("%d more: --format json has all", n))
	}
	return lines
}

// inCode names a transaction's code, with its place in the source.
func inCode(c conflicts.Code) string {
	if c.Name == "" {
		return "code that is not known"
	}
	if c.File == "" {
		return printer.Fit(c.Name, 0)
	}
	return fmt.Sprintf("%s (%s:%d)", printer.Fit(c.Name, 0), printer.Fit(c.File, 0), c.Line)
}

func ordinal(n int) string {
	switch {
	case n%10 == 1 && n != 11:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2 && n != 12:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3 && n != 13:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}

// transactionsJSON is what attempts to run transactions came to. A figure that is not known is null.
type transactionsJSON struct {
	Exact           bool         `json:"exact"`
	Windows         int          `json:"windows"`
	CountedSeconds  float64      `json:"counted_seconds"`
	OfSeconds       float64      `json:"of_seconds"`
	Started         figureJSON   `json:"started"`
	Committed       figureJSON   `json:"committed"`
	Failed          figureJSON   `json:"failed_validation"`
	Retried         figureJSON   `json:"retried"`
	Exceptions      figureJSON   `json:"exceptions"`
	InTransactions  *figureJSON  `json:"cpu_in_transactions"`
	ThrownOfThat    *figureJSON  `json:"cpu_thrown_away_in_transactions"`
	ThrownAway      *figureJSON  `json:"cpu_thrown_away"`
	CPUSamples      uint64       `json:"cpu_samples"`
	CPUByEnd        []cpuEndJSON `json:"cpu_by_end"`
	EndUnknownShare float64      `json:"end_unknown"`
	// Conflicts are null where no failed attempt was sampled.
	Conflicts *conflictsJSON `json:"conflicts"`
}

// conflictsJSON is what made attempts fail. Shares are of all attempts that failed.
type conflictsJSON struct {
	Samples   int            `json:"samples"`
	Known     figureJSON     `json:"known"`
	Places    []placeJSON    `json:"places"`
	Variables []variableJSON `json:"variables"`
}

type placeJSON struct {
	codeJSON
	Place     int            `json:"place"`
	Share     figureJSON     `json:"share"`
	Addresses []variableJSON `json:"addresses"`
	Writers   []writerJSON   `json:"writers"`
}

type variableJSON struct {
	PID     uint32     `json:"pid"`
	Address string     `json:"address"`
	Share   figureJSON `json:"share"`
}

type writerJSON struct {
	codeJSON
	Share float64 `json:"share"`
}

type codeJSON struct {
	Name   *string `json:"name"`
	Module *string `json:"module"`
	File   *string `json:"file"`
	Line   *uint32 `json:"line"`
}

func conflictsOf(pr *profile.Profile) *conflictsJSON {
	c := conflicts.Of(pr)
	if c == nil {
		return nil
	}
	code := func(c conflicts.Code) codeJSON {
		return codeJSON{printer.Known(c.Name), printer.Known(c.Module), printer.Known(c.File), printer.Known(c.Line)}
	}
	list := func(variables []conflicts.Variable) []variableJSON {
		out := make([]variableJSON, 0, len(variables))
		for _, v := range variables {
			out = append(out, variableJSON{v.PID, fmt.Sprintf("%#x", v.Address), figureJSON(v.Share)})
		}
		return out
	}
	doc := &conflictsJSON{Samples: c.Samples, Known: figureJSON(c.Known), Places: []placeJSON{}, Variables: list(c.Variables)}
	for _, p := range c.Places {
		row := placeJSON{code(p.Code), p.Place, figureJSON(p.Share), list(p.Addresses), []writerJSON{}}
		for _, w := range p.Writers {
			row.Writers = append(row.Writers, writerJSON{code(w.Code), w.Share})
		}
		doc.Places = append(doc.Places, row)
	}
	return doc
}

// figureJSON is an estimate with its 95 % interval.
type figureJSON struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// cpuEndJSON is the share of the CPU time inside of transactions in attempts that end so.
type cpuEndJSON struct {
	End string `json:"end"`
	figureJSON
}

func transactionsOf(pr *profile.Profile) *transactionsJSON {
	t := &pr.Transactions
	if t.Windows == 0 {
		return nil
	}
	attempts := func(end eventlog.TransactionEnd) figureJSON { return figureJSON(t.Attempts(end)) }
	doc := &transactionsJSON{
		Exact: t.Exact(), Windows: t.Windows, CountedSeconds: float64(t.LengthNs) / 1e9, OfSeconds: float64(t.StandsNs) / 1e9,
		Started: figureJSON(t.Started()), Committed: attempts(eventlog.TransactionCommitted), Failed: attempts(eventlog.TransactionFailed),
		Retried: attempts(eventlog.TransactionRetried), Exceptions: attempts(eventlog.TransactionThrown), CPUSamples: t.Noted, CPUByEnd: []cpuEndJSON{},
		EndUnknownShare: t.Unknown(), Conflicts: conflictsOf(pr),
	}
	known := func(e transactions.Estimate, ok bool) *figureJSON {
		if !ok {
			return nil
		}
		f := figureJSON(e)
		return &f
	}
	inside := insideOf(pr)
	if inside.Samples > 0 {
		doc.InTransactions = known(inside.estimate(), true)
	}
	doc.ThrownOfThat = known(t.CPUShare(eventlog.TransactionFailed))
	doc.ThrownAway = known(thrownAway(t, inside))
	for end := range eventlog.TransactionEnds {
		if e, ok := t.CPUShare(end); ok {
			doc.CPUByEnd = append(doc.CPUByEnd, cpuEndJSON{end.String(), figureJSON(e)})
		}
	}
	return doc
}
