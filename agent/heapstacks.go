package agent

import (
	"context"
	"time"

	"ccagent/agent/dump"
	"ccagent/agent/footprint"
	"ccagent/agent/process"
	"ccagent/agent/procfs"
	"ccagent/heap/threads"
)

// surveyTries is how often threads are looked at until no collection has run meanwhile.
const surveyTries = 20

// describeStacks adds to the largest stacks of a footprint their threads' labels and frames, as they are a moment later: the program runs.
// What cannot be read is left out.
func (c *capture) describeStacks(ctx context.Context, im *process.Image, f *footprint.Footprint) error {
	wanted := map[uint64]int{}
	for i := range f.Stacks {
		wanted[f.Stacks[i].TSO] = i
	}
	if len(wanted) == 0 {
		return nil
	}
	reader := dump.Reader(im, threads.DefaultLimits)
	generations, _, err := dump.Generations(ctx, im, reader)
	if err != nil || generations == 0 {
		return ctx.Err()
	}
	asleep := func() bool { return procfs.Asleep(int(im.PID)) }
	var stacks map[int]threads.Stack
	var survey threads.Survey
	for range surveyTries {
		stacks = map[int]threads.Stack{}
		err := reader.Survey(&survey, generations, asleep, func(t *threads.Thread) {
			i, ok := wanted[t.ID]
			if !ok || !survey.Look() || t.ID != f.Stacks[i].TSO {
				return
			}
			if label := survey.Label(); label != "" && !c.opts.NoLabels {
				f.Stacks[i].Label = label
			}
			if s, stood := survey.Stack(); stood {
				stacks[i] = s
			}
		})
		if err == nil {
			if _, err = survey.Confirm(asleep); err == nil {
				break
			}
		}
		stacks = nil // a collection has moved them
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(findPause):
		}
	}
	for i, s := range stacks {
		frames, _ := dump.Frames(&s)
		if f.Stacks[i].Node, err = c.writeStack(im, frames); err != nil {
			return err
		}
	}
	return nil
}
