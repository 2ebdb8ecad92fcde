package agent

import (
	"context"
	"os"
	"slices"

	"ccagent/agent/invoker"
	"ccagent/agent/process"
	"ccagent/agent/sink"
	"ccagent/agent/symbols"
	"ccagent/eventlog"
	"ccagent/internal/credentials"
	"ccagent/symbolize"
	"ccagent/symbolize/debuginfod"
	"ccagent/symbolize/worker"
)

// firstKernelAddress separates kernel from user space among module 0's
// addresses: the upper half of the address space is the kernel's.
const firstKernelAddress = 1 << 63

// names are the symbols of a capture: of all code that its stacks have, looked up beside it
// and at its end.
type names struct {
	opts      *Options
	who       *invoker.User
	owner     credentials.Credentials // of the target's own user
	log       *sink.Sink
	processes *process.Table
	live      *liveSymbols // nil unless Options.Live
	servers   *debuginfod.Client
}

func newNames(opts *Options, who *invoker.User, owner credentials.Credentials, log *sink.Sink, processes *process.Table) *names {
	n := &names{opts: opts, who: who, owner: owner, log: log, processes: processes}
	n.servers = debuginfod.New(opts.Debuginfod, invoker.DebugCache(who.UID), who.Credentials())
	if opts.Live {
		n.live = newLiveSymbols()
	}
	return n
}

// job asks for the names of what was seen and not asked for before, and servers, which may be nil, for
// debug files. The files that done closes are the job's until then.
func (n *names) job(ctx context.Context, servers *debuginfod.Client) (job worker.Job, done func()) {
	job = worker.Job{
		UID: n.who.UID, GID: n.who.GID,
		Reader:      &n.owner,
		EmbedSource: n.opts.EmbedSource,
		CacheDir:    invoker.CacheDir(n.who.UID),
		MemoryLimit: n.opts.SymbolizeMemory,
		Timeout:     n.opts.SymbolizeTime,
	}
	var opened []*os.File
	addresses := n.log.Seen.ByModule()
	if l := n.live; l != nil {
		job.After = l.ids
		for module, list := range addresses {
			addresses[module] = slices.DeleteFunc(list, func(a symbolize.Address) bool {
				k := sink.Address{Module: module, Addr: a.Addr}
				was := l.asked[k]
				l.asked[k] = true
				return was
			})
		}
	}
	for _, mod := range n.processes.Modules() {
		if len(addresses[mod.ID]) == 0 {
			continue
		}
		m := worker.ModuleFile{ID: mod.ID, Path: mod.Path, File: mod.File, Addresses: addresses[mod.ID], Root: mod.Root}
		if mod.Problem != nil {
			m.Problem = mod.Problem.Error()
		} else {
			m.Info = &mod.Binary
			if debug := symbols.DebugFile(ctx, mod, n.owner, servers); debug != nil {
				opened = append(opened, debug)
				m.Debug = debug
			}
		}
		job.Modules = append(job.Modules, m)
	}
	for _, a := range addresses[0] {
		if a.Addr >= firstKernelAddress {
			job.Kernel = append(job.Kernel, a)
		}
	}
	if len(job.Kernel) > 0 {
		kallsyms, err := os.Open("/proc/kallsyms")
		if err == nil {
			opened = append(opened, kallsyms)
			job.Kallsyms = kallsyms
		}
	}
	return job, func() {
		for _, f := range opened {
			f.Close()
		}
	}
}

// finish appends the symbol tables for what was seen. What could not be
// found is a matter for the summary, not an error.
func (n *names) finish(ctx context.Context, sum *Summary) error {
	if err := n.endLive(ctx); err != nil {
		return err
	}
	job, finished := n.job(ctx, n.servers)
	defer finished()
	sum.Unresolved = n.log.Seen.LeafSamples()
	if n.live != nil {
		for a := range n.live.resolved {
			sum.Unresolved -= n.log.Seen.Samples(a)
		}
	}
	done, err := worker.Run(ctx, job, func(e eventlog.Event) error {
		if l, ok := e.(*eventlog.Locations); ok {
			sum.Unresolved -= n.log.Seen.ResolvedBy(l)
		}
		return n.write(e)
	})
	if ctx.Err() != nil {
		sum.SymbolProblems = []string{"interrupted; ccagent symbolize " + n.log.File().Path + " adds them"}
		return nil
	}
	if err != nil {
		return err
	}
	sum.SymbolProblems = append(symbolize.Lines(done.Problems), n.servers.Problems()...)
	if done.Degraded != "" {
		sum.SymbolProblems = append([]string{done.Degraded}, sum.SymbolProblems...)
	}
	return nil
}
