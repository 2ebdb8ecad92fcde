package dump

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"ccagent/eventlog"
	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/threads"
	"ccagent/ui/printer"
)

// What the text has where the user does not say: groups of threads, frames of each, queues, and
// threads that are named in a line.
const (
	standardGroups = 100
	standardFrames = 40
	standardQueues = 20
	standardNames  = 8
)

// Report is the last thread dump in a log.
type Report struct {
	Profile *profile.Profile
	Only    []uint64 // the ids of the threads to show; empty shows all
}

// dump is what of the last dump is shown; nil if the log has none.
func (r Report) dump() *threads.Dump {
	g := dumpOf(r.Profile)
	if g == nil || len(r.Only) == 0 {
		return g
	}
	return g.About(r.Only)
}

// shows reports whether a thread is among those to show.
func (r Report) shows(t *threads.Thread) bool {
	return len(r.Only) == 0 || slices.Contains(r.Only, t.TSO)
}

// dumpOf is the last dump of a profile; nil if it has none.
func dumpOf(p *profile.Profile) *threads.Dump {
	if len(p.Dumps) == 0 {
		return nil
	}
	return threads.Of(p, &p.Dumps[len(p.Dumps)-1])
}

// noDump says why there is nothing.
const noDump = "the log has no thread dump; ccagent threads -o FILE PID writes one"

// Text implements printer.Report.
func (r Report) Text(w io.Writer, o printer.Options) error {
	p := printer.New(w, o)
	g := r.dump()
	if g == nil {
		p.Note("%s", noDump)
		return p.Flush()
	}
	t := text{p, g}
	t.heading()
	t.deadlocks()
	t.queues()
	t.groups()
	if len(r.Only) > 0 && len(g.Groups) == 0 {
		p.Note("The last dump of the log does not have the thread.")
	}
	t.os()
	for _, note := range g.Notes {
		p.Note("%s", printer.Fit(note, 0))
	}
	return p.Flush()
}

type text struct {
	*printer.Printer
	g *threads.Dump
}

// wrap writes a line, and what has no room on it further in on the next ones.
func (t text) wrap(line string) {
	if t.Width <= 0 || ansi.StringWidth(line) <= t.Columns() {
		t.Line(line)
		return
	}
	words := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(words)]
	for l := range strings.SplitSeq(ansi.Wrap(words, max(20, t.Columns()-len(indent)-4), ""), "\n") {
		t.Line(indent, strings.TrimLeft(l, " "))
		indent = line[:len(line)-len(words)] + "    "
	}
}

func (t text) heading() {
	g := t.g
	parts := []string{printer.Fit(t.File, 60), fmt.Sprintf("process %d", g.PID), summary(g), took(g)}
	t.wrap(t.Bold(strings.Join(parts, "   ")))
	t.Line("")
	if g.More {
		t.Note("There are more threads than a dump holds.")
	}
}

// summary counts threads by state: "12 threads: 9 mvar, 3 stm".
func summary(g *threads.Dump) string {
	var count [1 << 8]int
	for i := range g.Threads {
		count[g.Threads[i].State]++
	}
	var parts []string
	for s, n := range count {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, eventlog.ThreadState(s)))
		}
	}
	return format.Plural(uint64(len(g.Threads)), "Haskell thread") + ": " + strings.Join(parts, ", ")
}

// took says how the dump came about.
func took(g *threads.Dump) string {
	if g.Stopped == 0 {
		return "read in " + format.Duration(g.TookNs) + " while it ran"
	}
	return fmt.Sprintf("%s stopped for %s", format.Plural(uint64(g.Stopped), "OS thread"), format.Duration(g.PauseNs))
}

// name names a thread: its id, and its label if it has one.
func name(t *threads.Thread) string {
	if t.Label == "" {
		return fmt.Sprint(t.TSO)
	}
	return fmt.Sprintf("%d %q", t.TSO, t.Label)
}

// names names some threads, and counts the others.
func (t text) names(list []int, most int) string {
	var out []string
	shown := t.Rows(len(list), most)
	for _, i := range list[:shown] {
		out = append(out, printer.Fit(name(&t.g.Threads[i]), 40))
	}
	if rest := len(list) - shown; rest > 0 {
		out = append(out, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(out, ", ")
}

// object names what is waited for: "MVar 0x4200105678".
func object(b *eventlog.Blocker) string {
	switch b.Kind {
	case eventlog.BlockerMVar:
		return fmt.Sprintf("MVar %#x", b.Address)
	case eventlog.BlockerBlackHole:
		return fmt.Sprintf("black hole %#x", b.Address)
	case eventlog.BlockerException:
		return fmt.Sprintf("thread %d", b.Owner)
	case eventlog.BlockerSTM:
		var v []string
		for _, a := range b.Variables[:min(len(b.Variables), 4)] {
			v = append(v, fmt.Sprintf("%#x", a))
		}
		if rest := int(b.Entries) - len(v); rest > 0 {
			v = append(v, fmt.Sprintf("and %d more", rest))
		}
		return format.Plural(uint64(b.Entries), "TVar") + " " + strings.Join(v, ", ")
	}
	return "?"
}

// runsOn says where a thread runs, and that it ran while its stack was read.
func runsOn(t *threads.Thread) (out []string) {
	if t.Capability != eventlog.NoCapability {
		out = append(out, fmt.Sprintf("capability %d", t.Capability))
	}
	if t.TID != 0 {
		out = append(out, fmt.Sprintf("OS thread %d", t.TID))
	}
	if t.Bound {
		out = append(out, "bound")
	}
	if t.Moved {
		out = append(out, "ran while it was read")
	}
	return out
}

// blockedOn says what a thread waits for; empty if that is nothing that is known.
func blockedOn(t *threads.Thread) string {
	switch {
	case t.Blocker != nil:
		return object(t.Blocker)
	case t.State == eventlog.StateRead || t.State == eventlog.StateWrite:
		return fmt.Sprintf("file descriptor %d", t.FD)
	}
	return ""
}

// by says by what threads hold an object: how they were found.
func by(b *eventlog.Blocker, holds bool) string {
	switch {
	case b.Kind == eventlog.BlockerBlackHole:
		return "evaluated by"
	case b.Kind == eventlog.BlockerException:
		return "to be thrown to"
	case holds:
		return "held by"
	}
	return "referred to by"
}

func (t text) deadlocks() {
	for i := range t.g.Deadlocks {
		d := &t.g.Deadlocks[i]
		t.Line(t.Style("1;31", deadlockTitle(d)))
		shown := t.Rows(len(d.Threads), standardQueues)
		for _, n := range d.Threads[:shown] {
			th := &t.g.Threads[n]
			t.wrap("  " + printer.Fit(name(th), 60) + " waits for " + object(th.Blocker) + " " + by(th.Blocker, th.Holds) + " " + t.names(th.For, standardNames))
			if at := t.where(th); at != "" {
				t.wrap("      at " + at)
			}
		}
		if rest := len(d.Threads) - shown; rest > 0 {
			t.Line("  and ", format.Plural(uint64(rest), "more thread"))
		}
		t.Line("")
	}
}

// where is the place that a thread has come to: the first frame of its stack with a source.
func (t text) where(th *threads.Thread) string {
	f := firstPlaced(t.g.Stack(th))
	if f.File == "" {
		return ""
	}
	return printer.Fit(f.Name, 0) + "  " + place(&f)
}

func place(f *threads.Frame) string {
	if f.File == "" {
		return ""
	}
	if f.Line == 0 {
		return printer.Fit(f.File, 0)
	}
	return fmt.Sprintf("%s:%d", printer.Fit(f.File, 0), f.Line)
}

// queueLeast is the number of threads from which on a queue is listed.
const queueLeast = 2

func (t text) queues() {
	list := t.g.Queues
	end := slices.IndexFunc(list, func(q threads.Queue) bool { return q.Behind < queueLeast })
	if end >= 0 {
		list = list[:end]
	}
	if len(list) == 0 {
		return
	}
	t.Line(t.Bold("who waits for whom"))
	shown := t.Rows(len(list), standardQueues)
	for i := range list[:shown] {
		q := &list[i]
		line := fmt.Sprintf("  %s: %s %s", object(q.Blocker), waits(len(q.Waiting)), t.names(q.Waiting, standardNames))
		if len(q.For) > 0 {
			line += "; " + by(q.Blocker, q.Holds) + " " + t.names(q.For, standardNames)
			if len(q.For) == 1 {
				line += " (" + t.g.Threads[q.For[0]].State.String() + ")"
			}
		}
		if more := q.Behind - len(q.Waiting); more > 0 {
			line += fmt.Sprintf("; %d more behind them, in chains of up to %d", more, q.Depth)
		}
		if q.Convoy() {
			line += t.Style("33", "  convoy")
		}
		t.wrap(line)
		if f, known := t.g.Evaluates(q.Blocker); known {
			at := ""
			if f.File != "" {
				at = "  " + place(&f)
			}
			t.wrap("      the thunk's value is computed by " + printer.Fit(f.Name, 0) + at)
		}
		if len(q.For) == 1 {
			if at := t.where(&t.g.Threads[q.For[0]]); at != "" {
				t.wrap("      at " + at)
			}
		}
	}
	if rest := len(list) - shown; rest > 0 {
		t.Line(t.Faint(fmt.Sprintf("  %s more: --top 0 prints all", format.Plural(uint64(rest), "queue"))))
	}
	t.Line("")
}

func waits(n int) string {
	if n == 1 {
		return "1 waits,"
	}
	return fmt.Sprintf("%d wait,", n)
}

func (t text) groups() {
	shown := t.Rows(len(t.g.Groups), standardGroups)
	for i := range t.g.Groups[:shown] {
		t.group(&t.g.Groups[i])
	}
	if rest := len(t.g.Groups) - shown; rest > 0 {
		t.Line(t.Faint(fmt.Sprintf("%s more: --top 0 prints all", format.Plural(uint64(rest), "group"))))
		t.Line("")
	}
}

func (t text) group(group *threads.Group) {
	first := &t.g.Threads[group.Threads[0]]
	head := "thread " + t.names(group.Threads, standardNames)
	if n := len(group.Threads); n > 1 {
		head = fmt.Sprintf("%d threads ", n) + t.names(group.Threads, standardNames)
	}
	about := []string{group.State.String()}
	if len(group.Threads) == 1 {
		if on := blockedOn(first); on != "" {
			about[0] += ": " + on
		}
		if len(first.For) > 0 {
			about = append(about, by(first.Blocker, first.Holds)+" "+t.names(first.For, standardNames))
		}
		about = append(about, runsOn(first)...)
	}
	bytes := uint64(0)
	for _, n := range group.Threads {
		bytes += t.g.Threads[n].StackBytes
	}
	if bytes > 0 {
		about = append(about, format.Quantity(bytes, "bytes")+" of stack")
	}
	t.wrap(t.Bold(head) + "  " + strings.Join(about, ", "))
	stack := t.g.Stack(first)
	frames := len(stack)
	if t.Top == 0 {
		frames = min(frames, standardFrames)
	}
	for i := range stack[:frames] {
		f := &stack[i]
		t.wrap("    " + printer.PadRight(printer.Fit(f.Name, 0), 40) + "  " + t.Faint(place(f)))
	}
	if rest := len(stack) - frames; rest > 0 {
		t.Line(t.Faint(fmt.Sprintf("    %s more: --top 0 prints all", format.Plural(uint64(rest), "frame"))))
	}
	if s := first.Stop; !s.Complete() {
		t.wrap("    " + t.Faint(whyCut(first)))
	}
	t.Line("")
}

// whyCut says why a stack is not whole.
func whyCut(t *threads.Thread) string {
	switch {
	case t.Stop == eventlog.StopNoUserContext && t.State == eventlog.StateRunning:
		return "(its stack is not known: it runs C code, by a foreign call marked unsafe or in the run-time system)"
	case t.State == eventlog.StateFinished || t.State == eventlog.StateDied:
		return "(it has ended, and is not yet collected)"
	}
	return "(stack incomplete: " + t.Stop.String() + ")"
}

var osRoles = map[eventlog.OSThreadRole]string{
	eventlog.OSThreadRuns: "runs thread", eventlog.OSThreadCalls: "is in a foreign call for thread", eventlog.OSThreadBound: "belongs to bound thread",
}

func (t text) os() {
	if len(t.g.OS) == 0 {
		return
	}
	t.Line(t.Bold("OS threads"))
	shown := t.Rows(len(t.g.OS), standardGroups)
	for i := range t.g.OS[:shown] {
		o := &t.g.OS[i]
		line := fmt.Sprintf("  %-8d %s  %s", o.TID, string(rune(o.State)), printer.PadRight(printer.Fit(o.Name, 15), 15))
		if role := osRoles[o.Role]; role != "" {
			line += fmt.Sprintf("  %s %d", role, o.TSO)
		}
		t.Line(line)
	}
	if rest := len(t.g.OS) - shown; rest > 0 {
		t.Line(t.Faint(fmt.Sprintf("  %s more: --top 0 prints all", format.Plural(uint64(rest), "OS thread"))))
	}
	t.Line("")
}

type dumpJSON struct {
	PID       *uint32        `json:"pid"`
	Seconds   *float64       `json:"seconds"`
	Pause     *float64       `json:"pause_seconds"`
	Stopped   *uint32        `json:"os_threads_stopped"`
	Threads   []threadJSON   `json:"threads"`
	Deadlocks [][]uint64     `json:"deadlocks"`
	Cycles    []deadlockJSON `json:"deadlocks_detail"`
	Queues    []queueJSON    `json:"queues"`
	OS        []osJSON       `json:"os_threads"`
	More      *bool          `json:"more"`
	Notes     []string       `json:"notes"`
	// Why says why there is nothing.
	Why *string `json:"problem"`
}

func evaluates(g *threads.Dump, b *eventlog.Blocker) *frameJSON {
	if f, known := g.Evaluates(b); known {
		j := frameOf(f)
		return &j
	}
	return nil
}

type threadJSON struct {
	ID        uint64      `json:"id"`
	Label     *string     `json:"label"`
	State     string      `json:"state"`
	BlockedOn *string     `json:"blocked_on"`
	WaitsFor  []uint64    `json:"waits_for"`
	Holds     bool        `json:"waits_for_holders"`
	Cap       *uint32     `json:"cap"`
	Bound     bool        `json:"bound"`
	OSThread  *uint32     `json:"os_thread"`
	Moved     bool        `json:"moved"`
	Stack     []frameJSON `json:"stack"`
	Stop      string      `json:"stack_stop"`
	Bytes     uint64      `json:"stack_bytes"`
	Used      uint64      `json:"stack_used_bytes"`
}

func frameOf(f threads.Frame) frameJSON {
	return frameJSON{f.Name, printer.Known(f.Module), printer.Known(f.File), printer.Known(f.Line)}
}

type frameJSON struct {
	Name   string  `json:"name"`
	Module *string `json:"module"`
	File   *string `json:"file"`
	Line   *uint32 `json:"line"`
}

type deadlockJSON struct {
	Threads []uint64 `json:"threads"`
	Certain bool     `json:"certain"`
}

type queueJSON struct {
	Object  string   `json:"object"`
	Full    bool     `json:"full"`
	Stood   bool     `json:"unchanged"`
	Waiting []uint64 `json:"waiting"`
	For     []uint64 `json:"waits_for"`
	Behind  *int     `json:"behind"`
	Chain   *int     `json:"longest_chain"`
	Convoy  bool     `json:"convoy"`
	// Evaluates is the code that computes a thunk's value.
	Evaluates *frameJSON `json:"evaluates"`
}

type osJSON struct {
	TID    uint32  `json:"tid"`
	Name   string  `json:"name"`
	State  string  `json:"state"`
	Role   *string `json:"role"`
	Thread *uint64 `json:"thread"`
}

// JSON implements printer.Report.
func (r Report) JSON(w io.Writer, _ printer.Options) error {
	g := r.dump()
	doc := dumpJSON{Threads: []threadJSON{}, Deadlocks: [][]uint64{}, Cycles: []deadlockJSON{}, Queues: []queueJSON{}, OS: []osJSON{}, Notes: []string{}}
	if g == nil {
		doc.Why = printer.Known(noDump)
		return printer.JSON(w, doc)
	}
	ids := func(list []int) []uint64 {
		out := make([]uint64, len(list))
		for i, n := range list {
			out[i] = g.Threads[n].TSO
		}
		return out
	}
	doc.PID, doc.Stopped, doc.More = &g.PID, &g.Stopped, &g.More
	doc.Seconds, doc.Pause = printer.If(true, float64(g.TookNs)/1e9), printer.If(true, float64(g.PauseNs)/1e9)
	doc.Notes = append(doc.Notes, g.Notes...)
	for i := range g.Threads {
		t := &g.Threads[i]
		if !r.shows(t) {
			continue
		}
		j := threadJSON{
			ID: t.TSO, Label: printer.Known(t.Label), State: t.State.String(), BlockedOn: printer.Known(blockedOn(t)), WaitsFor: ids(t.For), Holds: t.Holds, Bound: t.Bound,
			OSThread: printer.Known(t.TID), Moved: t.Moved, Stack: []frameJSON{}, Stop: t.Stop.String(), Bytes: t.StackBytes, Used: t.StackUsed,
		}
		if t.Capability != eventlog.NoCapability {
			j.Cap = &t.Capability
		}
		for _, f := range g.Stack(t) {
			j.Stack = append(j.Stack, frameOf(f))
		}
		doc.Threads = append(doc.Threads, j)
	}
	for i := range g.Deadlocks {
		d := &g.Deadlocks[i]
		doc.Deadlocks = append(doc.Deadlocks, ids(d.Threads))
		doc.Cycles = append(doc.Cycles, deadlockJSON{ids(d.Threads), d.Certain})
	}
	for i := range g.Queues {
		q := &g.Queues[i]
		doc.Queues = append(doc.Queues, queueJSON{object(q.Blocker), q.Blocker.Full, q.Blocker.Stood, ids(q.Waiting), ids(q.For), printer.If(q.Followed, q.Behind), printer.If(q.Followed, q.Depth), q.Convoy(), evaluates(g, q.Blocker)})
	}
	for i := range g.OS {
		o := &g.OS[i]
		doc.OS = append(doc.OS, osJSON{o.TID, o.Name, string(rune(o.State)), printer.Known(osRoles[o.Role]), printer.Known(o.TSO)})
	}
	return printer.JSON(w, doc)
}
