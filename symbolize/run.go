package symbolize

import (
	"ccagent/eventlog"
	"ccagent/symbolize/core"
	"ccagent/symbolize/naming"
	"ccagent/symbolize/sources"
	"context"
	"fmt"
)

// Run resolves the job's addresses and emits the log's symbol tables: every
// event before those that refer to it. An event belongs to Run again when emit
// returns. What cannot be read is reported in ModuleSymbols.Problem and in the
// summary; the error is emit's or the context's, and what was emitted before
// it stands.
func Run(ctx context.Context, job Job, emit func(eventlog.Event) error) (Summary, error) {
	r := &run{
		job: &job, emit: emit, lastSpan: job.After.Span, lastBlock: job.After.Block, placeless: map[uint32]uint32{},
		bindings: naming.NewBindings(emit, job.After.Binding), files: sources.NewLog(emit, job.After.File, job.EmbedSource),
	}
	r.core = &core.Log{Emit: emit, Find: job.FindDumps, Read: job.ReadSource, Dirs: job.CoreDirs, Last: job.After.Core,
		Warn: func(format string, args ...any) { r.problem("", fmt.Sprintf(format, args...)) }}
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
	r.sum.Bindings, r.sum.Cores = r.bindings.Len(), r.core.Count
	r.sum.Files, r.sum.FilesEmbed = r.files.Files, r.files.Embedded
	if err != nil {
		return r.sum, fmt.Errorf("symbolise: %w", err)
	}
	return r.sum, nil
}

// run is what all modules of a job share: what is in the log already.
type run struct {
	job       *Job
	emit      func(eventlog.Event) error
	bindings  *naming.Bindings
	files     *sources.Log
	core      *core.Log
	placeless map[uint32]uint32 // by binding: spans without a place
	lastSpan  uint32
	lastBlock uint32
	sum       Summary
}

func (r *run) memory() uint64 {
	if r.job.Memory == 0 {
		return defaultMemory
	}
	return r.job.Memory
}

const maxProblems = 64

func (r *run) problem(file, reason string) {
	if len(r.sum.Problems) < maxProblems {
		r.sum.Problems = append(r.sum.Problems, Problem{file, reason})
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

// stretch notes where an address's location holds.
func (r *run) stretch(s Stretch) {
	if r.job.Stretches && len(r.sum.Stretches) < maxStretches && (len(r.sum.Stretches) == 0 || !r.sum.Stretches[len(r.sum.Stretches)-1].covers(s)) {
		r.sum.Stretches = append(r.sum.Stretches, s)
	}
}

// covers reports whether a stretch is the same code as another.
func (s Stretch) covers(o Stretch) bool { return s.Module == o.Module && s.Lo <= o.Lo && o.Hi <= s.Hi }

func (r *run) newBlock() uint32 {
	r.lastBlock++
	r.sum.Blocks++
	return r.lastBlock
}

func (r *run) newSpan() uint32 {
	r.lastSpan++
	r.sum.Spans++
	return r.lastSpan
}

// placelessSpan is the span of a cause of which only the binding is known.
func (r *run) placelessSpan(binding uint32) (uint32, error) {
	if id, ok := r.placeless[binding]; ok {
		return id, nil
	}
	id := r.newSpan()
	r.placeless[binding] = id
	return id, r.emit(&eventlog.Span{ID: id, Binding: binding})
}
