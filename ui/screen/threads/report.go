package threads

import (
	"fmt"
	"io"
	"slices"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/threads"
	"ccagent/ui/printer"
)

// Table is the table of the threads of a capture: how much of the CPU time and of the bytes
// allocated each has, and how long it waited where the log says so.
type Table struct {
	Profile *profile.Profile
	Filter  profile.Filter
	// Only has the ids of the threads to show; empty shows all. Shares are of all threads.
	Only []uint64
}

// users is the threads of the table.
func (r Table) users() *threads.Users {
	u := threads.UsersOf(r.Profile, r.Filter)
	if len(r.Only) > 0 {
		u.Threads = slices.DeleteFunc(u.Threads, func(t threads.User) bool { return !slices.Contains(r.Only, t.TSO) })
	}
	return u
}

// problem says why the table has no row; empty if it has.
func (r Table) problem(u *threads.Users) string {
	switch {
	case len(u.Threads) > 0:
		return ""
	case len(r.Only) > 0:
		return "no sample of CPU time or allocation is of the thread"
	}
	return noThreads
}

// noThreads says why there is nothing.
const noThreads = "no sample of CPU time or allocation is kept"

// standardThreads is how many rows the text has where the user does not say.
const standardThreads = 40

// Text implements printer.Report.
func (r Table) Text(w io.Writer, o printer.Options) error {
	p := printer.New(w, o)
	u := r.users()
	p.Wrap(p.Bold, "   ", printer.Fit(o.File, 60), format.Plural(named(u.Threads), "thread")+" that had samples")
	p.Line("")
	if why := r.problem(u); why != "" {
		p.Note("%s", why)
		return p.Flush()
	}
	head := "   CPU  ±95%   alloc  ±95%  "
	if u.Blocked != "" {
		head += "  blocked   share  ±95%  "
	}
	p.Line(p.Bold(head + "thread"))
	n := o.Rows(len(u.Threads), standardThreads)
	for i := range u.Threads[:n] {
		t := &u.Threads[i]
		waited := ""
		if u.Blocked != "" {
			waited = printer.PadLeft(blockedFor(&t.Blocked), 9) + "  " + useColumn(p, &t.Blocked) + "  "
		}
		p.Line(useColumn(p, &t.CPU), "  ", useColumn(p, &t.Alloc), "  ", waited, printer.Fit(nameOf(t), 80))
	}
	if rest := len(u.Threads) - n; rest > 0 {
		var cpu, alloc float64
		for i := range u.Threads[n:] {
			cpu, alloc = cpu+u.Threads[n+i].CPU.Share, alloc+u.Threads[n+i].Alloc.Share
		}
		p.Line(p.Faint(fmt.Sprintf("%s more, in all with %s of the CPU time and %s of alloc: --top 0 prints all", format.Plural(uint64(rest), "thread"),
			format.Percent(cpu), format.Percent(alloc))))
	}
	p.Line("")
	if u.Blocked != "" {
		p.Note("blocked: for how long the thread waited, and its part of the waiting of all")
	}
	p.Note("CPU, alloc: of the samples of each event; ±95%%: how far the share may be off, 95 times in 100, in points. --thread ID chooses one in other commands.")
	return p.Flush()
}

// named counts the Haskell threads: not what samples without one stand under.
func named(users []threads.User) (n uint64) {
	for i := range users {
		if users[i].TSO != 0 {
			n++
		}
	}
	return n
}

// blockedFor is for how long a thread waited.
func blockedFor(u *threads.Use) string {
	if u.Samples == 0 {
		return "-"
	}
	return format.Duration(u.Weight)
}

// nameOf names a thread: its id, and its label if it has one.
func nameOf(t *threads.User) string {
	switch {
	case t.TSO == 0:
		return "(no Haskell thread)"
	case t.Label != "":
		return fmt.Sprintf("%d %q", t.TSO, t.Label)
	}
	return fmt.Sprint(t.TSO)
}

func useColumn(p *printer.Printer, u *threads.Use) string {
	if u.Samples == 0 {
		return printer.PadLeft("-", 12)
	}
	return p.Heat(u.Share, format.Column(u.Share)) + printer.PadLeft(format.PlusMinus(u.Share, u.PlusMinus(u.Share)), 6)
}

type tableJSON struct {
	CPU     *string    `json:"cpu_event"`
	Alloc   *string    `json:"alloc_event"`
	Blocked *string    `json:"blocked_event"`
	Threads []tableRow `json:"threads"`
	Why     *string    `json:"problem"`
}

type tableRow struct {
	PID     *uint32  `json:"pid"`
	ID      uint64   `json:"id"`
	Label   *string  `json:"label"`
	CPU     *useJSON `json:"cpu"`
	Alloc   *useJSON `json:"alloc"`
	Blocked *useJSON `json:"blocked"`
	// BlockedNs is for how long the thread waited.
	BlockedNs *uint64 `json:"blocked_ns"`
}

type useJSON struct {
	Share     float64 `json:"share"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Samples   uint64  `json:"samples"`
	Effective float64 `json:"effective_samples"`
}

// JSON implements printer.Report.
func (r Table) JSON(w io.Writer, o printer.Options) error {
	u := r.users()
	doc := tableJSON{CPU: printer.Known(u.CPU), Alloc: printer.Known(u.Alloc), Blocked: printer.Known(u.Blocked), Threads: []tableRow{}}
	doc.Why = printer.Known(r.problem(u))
	of := func(event string, u *threads.Use) *useJSON {
		if event == "" {
			return nil
		}
		return &useJSON{u.Share, u.Low, u.High, u.Samples, u.Effective}
	}
	for i := range u.Threads[:o.Rows(len(u.Threads), len(u.Threads))] {
		t := &u.Threads[i]
		doc.Threads = append(doc.Threads, tableRow{printer.Known(t.PID), t.TSO, printer.Known(t.Label), of(u.CPU, &t.CPU), of(u.Alloc, &t.Alloc), of(u.Blocked, &t.Blocked), printer.If(u.Blocked != "", t.Blocked.Weight)})
	}
	return printer.JSON(w, doc)
}
