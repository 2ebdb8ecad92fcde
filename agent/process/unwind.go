package process

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"ccagent/agent/invoker"
	"ccagent/bpf"
	"ccagent/symbolize/worker"
)

// unwindTable is a module's call frame information in the walker's maps.
type unwindTable struct {
	bpf.Table
	base  uint64 // module address that rows count from
	pages *pages // nil if all rows are there
}

// UnwindRows estimates the rows of the call frame information of a program
// with so many bytes of code, and of its libraries. Haskell and C have a row for
// fifty bytes of code or more; the usual C libraries a quarter of a million rows
// together. Of a large program's code a part is ever sampled.
func UnwindRows(code uint64) int {
	const libraries, most = 1 << 20, 16 << 20
	if code > wholeCode {
		return int(min(max(code/64, wholeCode/24)+libraries, most))
	}
	return int(code/24 + libraries)
}

// compiled is a module's call frame information, encoded for the walker.
type compiled struct {
	module *Module
	worker.UnwindTable
}

// tables compiles call frame information beside the capture: a large program's
// takes seconds, and meanwhile its stacks are walked without.
type tables struct {
	done    chan compiled
	wanted  chan *Module
	pending int
	cache   *worker.UnwindCache
	whole   uint64 // wholeCode
	over    bool   // no more is wanted
	cancel  context.CancelFunc
	ended   chan struct{}

	pagesWanted chan pagesWanted
	pagesDone   chan pagesDone
	withPages   []*Module // whose rows are compiled by need
	guard       sync.Mutex
	paged       map[*Module]*worker.UnwindPages // of the goroutine that compiles
}

// maxCompiling bounds the modules that wait to be compiled or taken.
const maxCompiling = maxModules

func newTables(who *invoker.User) *tables {
	ctx, cancel := context.WithCancel(context.Background())
	t := &tables{
		done: make(chan compiled, maxCompiling), wanted: make(chan *Module, maxCompiling),
		pagesWanted: make(chan pagesWanted, maxCompiling), pagesDone: make(chan pagesDone, maxCompiling), paged: map[*Module]*worker.UnwindPages{},
		cancel: cancel, ended: make(chan struct{}), whole: wholeCode,
		cache: &worker.UnwindCache{Dir: invoker.CacheDir(who.UID), UID: who.UID, GID: who.GID},
	}
	go t.work(ctx)
	return t
}

// compile queues a module, whose file must stay open until it is compiled or close returns.
func (t *tables) compile(mod *Module) {
	if t.over || mod.File == nil || mod.Problem != nil || t.pending >= maxCompiling {
		return
	}
	t.pending++
	t.wanted <- mod
}

// work compiles queued modules: all that are queued at a time in one child, but those by need in
// one each.
func (t *tables) work(ctx context.Context) {
	defer close(t.ended)
	defer t.closePages()
	for {
		idle := time.After(idlePages)
		select {
		case <-ctx.Done():
			return
		case <-idle:
			for _, of := range t.paged {
				of.Stop()
			}
		case w := <-t.pagesWanted:
			t.compilePages(ctx, w)
		case mod := <-t.wanted:
			if mod == nil {
				return // closed
			}
			mods := []*Module{mod}
			for len(t.wanted) > 0 {
				if mod := <-t.wanted; mod != nil {
					mods = append(mods, mod)
				}
			}
			t.compileAll(ctx, mods)
		}
	}
}

// compileAll compiles modules, large programs beside the others.
func (t *tables) compileAll(ctx context.Context, mods []*Module) {
	done := func(mod *Module, u worker.UnwindTable) {
		if ctx.Err() == nil {
			t.done <- compiled{mod, u}
		}
	}
	var whole []*Module
	var files []*os.File
	var large sync.WaitGroup
	for _, mod := range mods {
		if !mod.byNeed(t.whole) {
			whole, files = append(whole, mod), append(files, mod.File)
			continue
		}
		large.Go(func() {
			of, u := worker.OpenUnwindPages(ctx, t.cache, mod.File)
			t.guard.Lock()
			t.paged[mod] = of
			t.guard.Unlock()
			done(mod, u)
		})
	}
	if len(files) > 0 {
		worker.CompileUnwind(ctx, t.cache, files, func(i int, u worker.UnwindTable) { done(whole[i], u) })
	}
	large.Wait()
}

// EndCompiling takes no more modules to compile. What is being compiled is of no use to this
// capture any more, but the next one finds it in the cache; without a cache it is cancelled.
func (ps *Table) EndCompiling() {
	t := ps.tables
	if t.over {
		return
	}
	t.over = true
	close(t.wanted)
	if t.cache.Dir == "" {
		t.cancel()
	}
}

// StopCompiling waits at most patience for what is being compiled, and cancels the rest.
func (ps *Table) StopCompiling(patience time.Duration) {
	ps.EndCompiling()
	if patience > 0 {
		select {
		case <-ps.tables.ended:
		case <-time.After(patience):
		}
	}
	ps.tables.cancel()
	<-ps.tables.ended
}

// TakeTables loads compiled tables into the walker, and waits at most patience for more.
func (ps *Table) TakeTables(patience time.Duration) error {
	over := time.After(patience)
	for ps.tables.pending > 0 {
		var c compiled
		select {
		case c = <-ps.tables.done:
		default:
			select {
			case c = <-ps.tables.done:
			case <-over:
				return nil
			}
		}
		ps.tables.pending--
		if err := ps.takeTable(c); err != nil {
			return err
		}
	}
	return nil
}

func (ps *Table) takeTable(c compiled) error {
	if c.Err == nil && len(c.Rows) > 0 {
		var stored bpf.Table
		if stored, c.Err = ps.sampler.AddTable(c.module.reader.UID, c.Rows, c.Rules); c.Err == nil {
			c.module.unwind = &unwindTable{Table: stored, base: c.Base}
			if c.Paged {
				ps.loadPages(c.module, &c.UnwindTable)
			}
		}
	}
	if c.Err != nil {
		ps.logs.Warn(fmt.Sprintf("compile call frame information of %s: %v; its C code will not be unwound", c.module.Path, c.Err))
	}
	for _, im := range ps.Images {
		if c.Err == nil && im.maps(c.module) {
			if err := ps.updateWalker(im); err != nil {
				return err
			}
		}
		if im.RTS == c.module {
			for _, w := range ps.watchers {
				w.Unwindable(im)
			}
		}
	}
	return nil
}

// Unwinds reports whether the walker has the module's call frame information.
func (mod *Module) Unwinds() bool { return mod.unwind != nil }
