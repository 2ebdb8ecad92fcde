package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"ccagent/agent"
	"ccagent/internal/format"
	"ccagent/perf"

	"github.com/spf13/cobra"
)

// eventRow is an event as `ccagent events` lists it.
type eventRow struct {
	Name      string   `json:"name"`
	Aliases   []string `json:"aliases,omitempty"`
	Kind      string   `json:"kind"`
	Unit      string   `json:"unit"`
	About     string   `json:"about,omitempty"`
	Available bool     `json:"available"`
	Reason    string   `json:"reason,omitempty"`
	Help      string   `json:"help,omitempty"`
}

func listEvents() []eventRow {
	var rows []eventRow
	for _, e := range append(perf.Events(), perf.PMUEvents()...) {
		row := eventRow{Name: e.Name, Aliases: e.Aliases, Kind: e.Kind, Unit: e.Unit}
		rows = append(rows, row.probed(perf.Probe(e)))
	}
	_, err := perf.FindTick()
	tick := eventRow{Name: perf.TickEvent, Kind: "software", Unit: "ns", About: "CPU time at the kernel's tick"}
	rows = append(rows, tick.probed(err))
	for _, e := range agent.ProgramEvents() {
		row := eventRow{Name: e.Name, Kind: "program", Unit: e.Unit, About: e.About, Available: e.Reason == "", Reason: e.Reason, Help: e.Help}
		rows = append(rows, row)
	}
	return rows
}

// probed adds whether the event is available.
func (r eventRow) probed(err error) eventRow {
	if r.Available = err == nil; r.Available {
		return r
	}
	r.Reason = err.Error()
	var why *perf.UnavailableError
	if errors.As(err, &why) {
		r.Reason, r.Help = why.Reason, why.Help
	}
	return r
}

func eventsCommand() *cobra.Command {
	var as string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "list the events that this machine can sample, and why it lacks the others",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows := listEvents()
			return printAs(cmd, as, struct {
				Events []eventRow `json:"events"`
			}{rows}, func(to io.Writer) error { return printEvents(to, rows) })
		},
	}
	formatFlag(cmd, &as)
	return cmd
}

// eventsWidth is the width of the listing in columns.
const eventsWidth = 79

// printEvents lists the available events, then the others by reason.
func printEvents(to io.Writer, rows []eventRow) error {
	var table strings.Builder
	out := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	type missing struct {
		names        []string
		reason, help string
	}
	var lacking []*missing
	for _, r := range rows {
		if r.Available {
			about := r.About
			if len(r.Aliases) > 0 {
				about = "or " + r.Aliases[0]
			}
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", r.Name, r.Kind, r.Unit, about)
			continue
		}
		i := slices.IndexFunc(lacking, func(m *missing) bool { return m.reason == r.Reason && m.help == r.Help })
		if i < 0 {
			i = len(lacking)
			lacking = append(lacking, &missing{reason: r.Reason, help: r.Help})
		}
		lacking[i].names = append(lacking[i].names, r.Name)
	}
	fmt.Fprintf(out, "rXXXX\traw\tevents\tan event code of this CPU, hexadecimal\n")
	fmt.Fprintf(out, "PMU/term=value,…/\tpmu\tevents\tsuch as cpu_core/event=0x3c,umask=0/\n")
	fmt.Fprintf(out, "\nEVENT:u, :k\t\t\tin user space only, in the kernel only\n")
	fmt.Fprintf(out, "EVENT:p, :pp, :ppp, :P\t\t\tat precise addresses, if the CPU can\n")
	if err := out.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(to, strings.TrimRight(line, " \n"))
	}
	for _, m := range lacking {
		fmt.Fprintf(to, "\nnot available:\n%s", filled("  ", m.names))
		fmt.Fprint(to, filled("    why   ", strings.Fields(m.reason)))
		if m.help != "" {
			fmt.Fprint(to, filled("    help  ", strings.Fields(m.help)))
		}
	}
	return nil
}

// filled fills lines with words; the first line begins with a text, and the others are
// indented to its end.
func filled(begin string, words []string) string {
	text := format.Fill(strings.Join(words, " "), eventsWidth-len(begin))
	return begin + strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", len(begin))) + "\n"
}
