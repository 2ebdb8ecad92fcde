package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"

	"ccagent/eventlog"
	"ccagent/internal/sandbox"
	"ccagent/symbolize"
	"ccagent/symbolize/core"
	"ccagent/symbolize/sources"
)

// Main does a child's work and ends the process if this process is one. A
// program that calls Run, CompileUnwind or MiniDebug calls it first thing in main.
func Main() {
	sandbox.Main(map[string]sandbox.Role{roleSymbolise: child, roleUnwind: unwindChild, roleUnwindPages: unwindPages, roleMiniDebug: miniDebugChild})
}

func child(c *sandbox.Conn, files []*os.File) error {
	_, b, err := c.Receive(maxRequest)
	if err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	var req request
	if err := json.Unmarshal(b, &req); err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	defer runtime.KeepAlive(ballast(req.Memory))
	ask := asker{c}
	job := symbolize.Job{
		Kernel: req.Kernel, EmbedSource: req.EmbedSource, SourceDirs: req.SourceDirs, CoreDirs: req.CoreDirs,
		SymbolsOnly: req.SymbolsOnly, Stretches: req.Stretches, After: req.After, Memory: req.Memory / 4 * 3,
		ReadSource: ask.source, FindDumps: ask.dumps,
	}
	if req.Cache {
		job.Cache = ask
	}
	for _, m := range req.Modules {
		mod := symbolize.Module{ID: m.ID, Path: m.Path, Size: m.Size, ModTime: m.ModTime, DebugSize: m.DebugSize, Problem: m.Problem, Addresses: m.Addresses, Info: m.Info, Root: m.Root}
		if m.File != 0 {
			mod.File = files[m.File]
		}
		if m.Debug != 0 {
			mod.Debug = files[m.Debug]
		}
		job.Modules = append(job.Modules, mod)
	}
	ctx := context.Background()
	if req.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, req.Timeout, errTime)
		defer cancel()
	}
	w := eventlog.NewWriter(files[fileEvents], &eventlog.WriterOptions{Verbatim: true})
	sum, err := symbolize.Run(ctx, job, func(e eventlog.Event) error { return w.Write(0, eventlog.NoCap, e) })
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	return send(c, sendSummary, sum)
}

var errTime = errors.New("time budget spent (--symbolize-time)")

// ballast is never touched, so it takes no memory. But the Go GC counts it as
// live while it is referred to, and lets the heap of a child, which mostly lives for
// a moment, grow by as much before it first runs.
func ballast(memory uint64) []byte { return make([]byte, min(memory/16, 64<<20)) }

// asker asks the parent for files.
type asker struct{ c *sandbox.Conn }

// ask returns the number of an answer and its bytes.
func (a asker) ask(head uint64, q question) (uint64, []byte, error) {
	if len(q.Tree) > maxPath || len(q.Dir) > maxPath || len(q.Name) > maxPath {
		return 0, nil, fs.ErrNotExist
	}
	if err := send(a.c, head, q); err != nil {
		return 0, nil, err
	}
	got, b, err := a.c.Receive(maxSource)
	switch {
	case err != nil:
		return 0, nil, err
	case got == failed && bytes.Equal(b, []byte(answerMissing)):
		return 0, nil, fs.ErrNotExist
	case got == failed:
		return 0, nil, errors.New(string(b))
	}
	return got, b, nil
}

func (a asker) source(ref sources.Ref, maxSize int64) (sources.Content, error) {
	at, b, err := a.ask(askSource, question{Ref: ref, Max: maxSize})
	if err != nil {
		return sources.Content{}, err
	}
	return sources.Content{Text: b, ModTime: time.Unix(0, int64(at))}, nil
}

func (a asker) dumps(module uint32, dir string) ([]core.Dump, error) {
	_, b, err := a.ask(askDumps, question{Ref: sources.Ref{Module: module}, Tree: dir})
	if err != nil {
		return nil, err
	}
	var list dumpList
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("read the list of Core dumps: %w", err)
	}
	if list.Cut {
		return list.Dumps, core.ErrManyFiles
	}
	return list.Dumps, nil
}

// Open, Create and Keep make the asker an IndexCache.
func (a asker) Open(module uint32, key string) *os.File {
	if _, _, err := a.ask(askIndex, question{Ref: sources.Ref{Module: module}, Key: key}); err != nil {
		return nil
	}
	f, err := a.c.ReceiveFile()
	if err != nil {
		return nil
	}
	return f
}

func (a asker) Create(module uint32) (*os.File, error) {
	if _, _, err := a.ask(askNewIndex, question{Ref: sources.Ref{Module: module}}); err != nil {
		return nil, err
	}
	return a.c.ReceiveFile()
}

func (a asker) Keep(module uint32, key string, f *os.File) error {
	if err := f.Close(); err != nil {
		return fmt.Errorf("write to the cache: %w", err)
	}
	_, _, err := a.ask(askKeepIndex, question{Ref: sources.Ref{Module: module}, Key: key})
	return err
}
