package agent

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ccagent/agent/process"
	"ccagent/eventlog"
	"ccagent/internal/credentials"
	"ccagent/symbolize"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/worker"
)

// firstKernelAddress separates kernel from user space among module 0's
// addresses: the upper half of the address space is the kernel's.
const firstKernelAddress = 1 << 63

// symbolJob asks for the names of what was seen and not asked for before. The
// files that done closes are the job's until then.
func (c *capture) symbolJob() (job worker.Job, done func()) {
	job = worker.Job{
		UID: c.who.UID, GID: c.who.GID,
		Reader:      &c.owner,
		EmbedSource: c.opts.EmbedSource,
		CacheDir:    indexCache(c.who.UID),
		MemoryLimit: c.opts.SymbolizeMemory,
		Timeout:     c.opts.SymbolizeTime,
	}
	var opened []*os.File
	addresses := c.seen.byModule()
	if l := c.live; l != nil {
		job.After = l.ids
		for module, list := range addresses {
			addresses[module] = slices.DeleteFunc(list, func(a symbolize.Address) bool {
				k := address{module, a.Addr}
				was := l.asked[k]
				l.asked[k] = true
				return was
			})
		}
	}
	for _, mod := range c.processes.Modules() {
		if len(addresses[mod.ID]) == 0 {
			continue
		}
		m := worker.ModuleFile{ID: mod.ID, Path: mod.Path, File: mod.File, Addresses: addresses[mod.ID], Root: mod.Root}
		if mod.Problem != nil {
			m.Problem = mod.Problem.Error()
		} else if debug := openDebugFile(mod, c.owner); debug != nil {
			opened = append(opened, debug)
			m.Debug = debug
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

// symbolize appends the symbol tables for what was seen. What could not be
// found is a matter for the summary, not an error.
func (c *capture) symbolize(ctx context.Context) error {
	if err := c.endLive(ctx); err != nil {
		return err
	}
	job, finished := c.symbolJob()
	defer finished()
	c.sum.Unresolved = c.seen.leafSamples()
	if c.live != nil {
		for a := range c.live.resolved {
			c.sum.Unresolved -= c.seen.sightings[a].samples
		}
	}
	done, err := worker.Run(ctx, job, func(e eventlog.Event) error {
		if l, ok := e.(*eventlog.Locations); ok {
			c.sum.Unresolved -= c.seen.resolvedBy(l)
		}
		return c.writeSymbol(e)
	})
	if ctx.Err() != nil {
		c.sum.SymbolProblem = "interrupted; ccagent symbolize " + c.sum.Log + " adds them"
		return nil
	}
	if err != nil {
		return err
	}
	problems := done.Problems
	if done.Degraded != "" {
		problems = append([]string{done.Degraded}, problems...)
	}
	c.sum.SymbolProblem = strings.Join(problems, "; ")
	return nil
}

// openDebugFile finds the separate debug file of a module that holds no debug
// information itself, among what the program's user may read; nil if there is none.
func openDebugFile(mod *process.Module, owner credentials.Credentials) (f *os.File) {
	if mod.Binary.HasDWARF {
		return nil
	}
	_ = owner.Run(func() error {
		f = binary.OpenDebugFile(mod.Root, mod.Path, &mod.Binary)
		return nil
	})
	return f
}

// indexCache is where the symboliser of a user's logs keeps its indices: in the
// user's own cache directory. Empty for root where the symboliser is not root.
func indexCache(uid uint32) string {
	dir, err := os.UserCacheDir()
	if os.Geteuid() == 0 {
		u, lookup := user.LookupId(strconv.FormatUint(uint64(uid), 10))
		if uid == 0 || lookup != nil || !filepath.IsAbs(u.HomeDir) {
			return ""
		}
		dir, err = filepath.Join(u.HomeDir, ".cache"), nil
	}
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "ccagent", "index")
}

// leafSamples counts the samples that hit a user-space address.
func (s *seenAddresses) leafSamples() uint64 {
	var n uint64
	for _, seen := range s.sightings {
		n += seen.samples
	}
	return n
}

// resolvedBy counts the samples whose leaf got a category from the event.
func (s *seenAddresses) resolvedBy(l *eventlog.Locations) uint64 {
	var n uint64
	for _, loc := range l.Locations {
		if loc.Category != eventlog.CategoryUnresolved {
			n += s.sightings[address{l.Module, loc.Addr}].samples
		}
	}
	return n
}
