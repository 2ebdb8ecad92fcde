package symbolize

import (
	"context"
	"fmt"

	"ccagent/eventlog"
	"ccagent/symbolize/core"
	"ccagent/symbolize/dwarfindex"
)

// Run resolves the job's addresses and emits the log's symbol tables: every
// event before those that refer to it. An event belongs to Run again when emit
// returns. What cannot be read is told in ModuleSymbols.Problem and in the
// summary; the error is emit's or the context's, and what was emitted before
// it stands.
func Run(ctx context.Context, job Job, emit func(eventlog.Event) error) (Summary, error) {
	r := &run{job: &job, emit: emit, bindings: newBindings(emit, job.After.Binding), byPlace: map[string]uint32{}, placeless: map[uint32]uint32{}, dumps: map[string][]core.Dump{}}
	r.fileCount, r.spanCount, r.blockCount = int(job.After.File), int(job.After.Span), int(job.After.Block)
	r.coreCount = int(job.After.Core)
	err := r.kernel()
	for i := range job.Modules {
		if err != nil {
			break
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			break
		}
		err = r.module(ctx, &job.Modules[i])
	}
	r.sum.Bindings = len(r.bindings.ids)
	if err != nil {
		return r.sum, fmt.Errorf("symbolise: %w", err)
	}
	return r.sum, nil
}

type run struct {
	job         *Job
	emit        func(eventlog.Event) error
	bindings    *bindings
	byPlace     map[string]uint32 // files known by line tables
	placeless   map[uint32]uint32 // by binding: spans without a place
	sum         Summary
	fileCount   int
	spanCount   int
	blockCount  int
	sourceBytes int
	dumps       map[string][]core.Dump // by folder
	coreCount   int
	coreBytes   int
	coreFull    bool
}

func (r *run) memory() uint64 {
	if r.job.Memory == 0 {
		return defaultMemory
	}
	return r.job.Memory
}

const maxProblems = 64

func (r *run) problem(format string, args ...any) {
	if len(r.sum.Problems) < maxProblems {
		r.sum.Problems = append(r.sum.Problems, fmt.Sprintf(format, args...))
	}
}

func (r *run) count(l *eventlog.Location) {
	r.sum.Addresses++
	if l.Block != 0 {
		r.sum.InBlocks++
	}
	if l.Block != 0 || l.Binding != 0 {
		r.sum.Resolved++
	}
}

// lineFile gives the file of a line-table row.
func (m *moduleRun) lineFile(p dwarfindex.Place) (uint32, error) {
	if p.File == "" {
		return 0, nil
	}
	key := fmt.Sprint(m.mod.Root) + "\x00" + p.CompDir + "\x00" + p.File
	if id, ok := m.r.byPlace[key]; ok {
		return id, nil
	}
	src, problem := m.readSource(p.File, []string{p.CompDir})
	id, err := m.r.emitFile(p.File, src.Text, problem)
	m.r.byPlace[key] = id
	return id, err
}
