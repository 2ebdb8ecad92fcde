package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"

	"ccagent/agent"
	"ccagent/perf"

	"github.com/spf13/cobra"
)

// eventRow is an event as `ccagent events` lists it.
type eventRow struct {
	Name      string   `json:"name"`
	Aliases   []string `json:"aliases,omitempty"`
	Kind      string   `json:"kind"`
	Unit      string   `json:"unit"`
	Available bool     `json:"available"`
	Reason    string   `json:"reason,omitempty"`
	Help      string   `json:"help,omitempty"`
}

func listEvents() []eventRow {
	var rows []eventRow
	for _, e := range append(perf.Events(), perf.PMUEvents()...) {
		row := eventRow{Name: e.Name, Aliases: e.Aliases, Kind: e.Kind, Unit: e.Unit, Available: true}
		if err := perf.Probe(e); err != nil {
			row.Available = false
			row.Reason = err.Error()
			var why *perf.UnavailableError
			if errors.As(err, &why) {
				row.Reason, row.Help = why.Reason, why.Help
			}
		}
		rows = append(rows, row)
	}
	for _, e := range agent.ProgramEvents() {
		row := eventRow{Name: e.Name, Kind: "program", Unit: e.Unit, Available: e.Err == nil}
		if e.Err != nil {
			row.Reason = e.Err.Error()
		}
		rows = append(rows, row)
	}
	return rows
}

func eventsCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "list the events that this machine can sample, and why it lacks the others",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows := listEvents()
			switch format {
			case "json":
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(struct {
					Events []eventRow `json:"events"`
				}{rows})
			case "text":
				return printEvents(cmd, rows)
			}
			return fmt.Errorf("--format %q is neither text nor json", format)
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	return cmd
}

// printEvents lists what there is, then what there is not, by reason.
func printEvents(cmd *cobra.Command, rows []eventRow) error {
	out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	var reasons []string
	missing := map[string][]string{}
	for _, r := range rows {
		if r.Available {
			alias := ""
			if len(r.Aliases) > 0 {
				alias = "or " + r.Aliases[0]
			}
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\n", r.Name, r.Kind, r.Unit, alias)
			continue
		}
		why := r.Reason
		if r.Help != "" {
			why += "; " + r.Help
		}
		if missing[why] == nil {
			reasons = append(reasons, why)
		}
		missing[why] = append(missing[why], r.Name)
	}
	fmt.Fprintf(out, "rXXXX\traw\tevents\tan event code of this CPU, in hexadecimal\n")
	fmt.Fprintf(out, "PMU/term=value,…/\tpmu\tevents\tan event of one PMU, such as cpu_core/event=0x3c,umask=0/\n")
	fmt.Fprintf(out, "\nEVENT:u, :k\t\t\tin user space only, in the kernel only\n")
	fmt.Fprintf(out, "EVENT:p, :pp, :ppp, :P\t\t\tat precise addresses, as far as the CPU can\n")
	if err := out.Flush(); err != nil {
		return err
	}
	for _, why := range reasons {
		fmt.Fprintf(cmd.OutOrStdout(), "\nnot available: %s\n", why)
		for _, name := range missing[why] {
			fmt.Fprintf(cmd.OutOrStdout(), "  %s\n", name)
		}
	}
	return nil
}
