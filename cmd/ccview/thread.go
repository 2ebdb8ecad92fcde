package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ccagent/profile"
	"ccagent/profile/threads"

	"github.com/spf13/cobra"
)

// missing is a thread that --thread names and a log does not have.
type missing struct {
	name  string
	label bool // it is no id
}

// findThreads gives the ids of the Haskell threads that --thread names, by id or label, as far as
// a log has them.
func (v *view) findThreads(known []threads.Name, ids []uint64) (found []uint64, not []missing) {
	labelled := func(label string) bool {
		n := len(found)
		for _, k := range known {
			if k.Label == label {
				found = append(found, k.TSO)
			}
		}
		return len(found) > n
	}
	for _, id := range ids {
		name := strconv.FormatUint(id, 10)
		switch {
		// 0 is what ran on no Haskell thread's behalf.
		case id == 0, slices.ContainsFunc(known, func(n threads.Name) bool { return n.TSO == id }):
			found = append(found, id)
		case !labelled(name):
			not = append(not, missing{name, false})
		}
	}
	for _, label := range v.labels {
		if !labelled(label) {
			not = append(not, missing{label, true})
		}
	}
	slices.Sort(found)
	return slices.Compact(found), not
}

// chooseThreads has a filter keep the Haskell threads that --thread names. It is a wrong call if
// the log does not have one of them.
func (v *view) chooseThreads(p *profile.Profile, path string, f *profile.Filter) error {
	if len(v.labels)+len(f.Threads) == 0 {
		return nil
	}
	known := threads.Known(p)
	found, not := v.findThreads(known, f.Threads)
	if len(not) > 0 {
		return not[0].error(path, known)
	}
	f.Threads = found
	return nil
}

// error says that a log does not have the thread, and what it has.
func (m missing) error(path string, known []threads.Name) error {
	if m.label {
		return wrong("%s has no thread with the label %q%s", path, m.name, labelList(known))
	}
	return wrong("%s has no thread %s%s", path, m.name, idList(known))
}

// unlabelled refuses labels of threads where the log is not yet read when they are needed.
func (v *view) unlabelled() error {
	if len(v.labels) > 0 {
		return wrong("--thread %s: give the thread's id here, which ccview threads lists", v.labels[0])
	}
	return nil
}

// maxListed bounds the labels, and the stretches of ids, that an error lists.
const maxListed = 20

// listed says what of a kind a log has.
func listed(what string, all []string) string {
	if len(all) > maxListed {
		return fmt.Sprintf(": it has %s%s and %d more; ccview threads lists them", what, strings.Join(all[:maxListed], ", "), len(all)-maxListed)
	}
	return ": it has " + what + strings.Join(all, ", ")
}

func labelList(known []threads.Name) string {
	var labels []string
	for _, n := range known {
		if n.Label != "" {
			labels = append(labels, n.Label)
		}
	}
	slices.Sort(labels)
	if labels = slices.Compact(labels); len(labels) > 0 {
		return listed("", labels)
	}
	return ": its threads have no labels" + strings.Replace(idList(known), ": it has", "; it has", 1)
}

// idList lists ids, and those that follow each other by the first and the last: 1, 4-9.
func idList(known []threads.Name) string {
	var runs []string
	for i := 0; i < len(known); {
		from, to := known[i].TSO, known[i].TSO
		for i++; i < len(known) && known[i].TSO <= to+1; i++ {
			to = known[i].TSO
		}
		run := strconv.FormatUint(from, 10)
		if to > from {
			run += "-" + strconv.FormatUint(to, 10)
		}
		runs = append(runs, run)
	}
	if len(runs) == 0 {
		return ": nothing in it is of a Haskell thread"
	}
	if len(known) == 1 {
		return listed("thread ", runs)
	}
	return listed("threads ", runs)
}

// refuseChoice refuses the flags that choose samples, for a command that shows none, or a whole log. Why says that.
func refuseChoice(c *cobra.Command, why string, except ...string) error {
	for _, name := range choosesSamples {
		if slices.Contains(except, name) || !c.Flags().Changed(name) {
			continue
		}
		instead := "ccview hot, stacks and timeline take it"
		if name == "thread" {
			instead = "ccview hot, stacks, timeline and threads show a thread alone"
		}
		return wrong("--%s: %s %s, so there are no samples to choose; %s", name, c.CommandPath(), why, instead)
	}
	return nil
}
