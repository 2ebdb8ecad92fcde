package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"ccagent/eventlog"
	"ccagent/symbolize"
	"ccagent/symbolize/core"
	"ccagent/symbolize/sources"

	"golang.org/x/sys/unix"
)

// Main does a child's work and ends the process if this process is one. A
// program that calls Run or CompileUnwind calls it first thing in main.
func Main() {
	var sum symbolize.Summary
	var err error
	switch os.Getenv(childVariable) {
	case "":
		return
	case roleUnwind:
		err = unwindChild()
	default:
		sum, err = child()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := writeJSON(os.Stdout, sum); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func child() (symbolize.Summary, error) {
	if os.Geteuid() == 0 {
		return symbolize.Summary{}, errors.New("refuse to parse a program's files as root")
	}
	jobFile := os.NewFile(fdJob, "job")
	var req request
	if err := json.NewDecoder(jobFile).Decode(&req); err != nil {
		return symbolize.Summary{}, fmt.Errorf("read the job: %w", err)
	}
	if err := confine(&req); err != nil {
		return symbolize.Summary{}, err
	}
	defer runtime.KeepAlive(ballast(req.Memory))
	job := symbolize.Job{
		Kernel: req.Kernel, EmbedSource: req.EmbedSource, SourceDirs: req.SourceDirs, CoreDirs: req.CoreDirs,
		CacheDir: req.CacheDir, SymbolsOnly: req.SymbolsOnly, After: req.After, Memory: req.Memory / 4 * 3,
		ReadSource: sources.Read, FindDumps: core.FindDumps,
	}
	roots := map[int]*os.File{}
	job.ReadSourceIn = func(root int, path string, maxSize int64) (sources.Content, error) {
		return sources.ReadInRoot(roots[root], path, maxSize)
	}
	if req.AskSource {
		to, from := os.NewFile(fdAsk, "ask"), os.NewFile(fdAnswer, "answer")
		job.ReadSource, job.FindDumps = ask(to, from), askDumps(to, from)
		job.ReadSourceIn = func(root int, path string, maxSize int64) (sources.Content, error) {
			return job.ReadSource(rooted(root, path), maxSize)
		}
	}
	if req.Kallsyms != 0 {
		job.Kallsyms = os.NewFile(uintptr(req.Kallsyms), "kallsyms")
	}
	for _, m := range req.Modules {
		mod := symbolize.Module{ID: m.ID, Path: m.Path, Size: m.Size, ModTime: m.ModTime, DebugSize: m.DebugSize, Problem: m.Problem, Addresses: m.Addresses, Root: m.Root}
		if m.Root != 0 && roots[m.Root] == nil {
			roots[m.Root] = os.NewFile(uintptr(m.Root), "root")
		}
		if m.File != 0 {
			mod.File = os.NewFile(uintptr(m.File), m.Path)
		}
		if m.Debug != 0 {
			mod.Debug = os.NewFile(uintptr(m.Debug), m.Path)
		}
		job.Modules = append(job.Modules, mod)
	}
	ctx := context.Background()
	if req.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, req.Timeout, errTime)
		defer cancel()
	}
	w := eventlog.NewWriter(os.NewFile(fdEvents, "events"), &eventlog.WriterOptions{Verbatim: true})
	sum, err := symbolize.Run(ctx, job, func(e eventlog.Event) error { return w.Write(0, eventlog.NoCap, e) })
	return sum, errors.Join(err, w.Close())
}

var errTime = errors.New("time budget spent (--symbolize-time)")

// confine gives up what the child does not need, and limits what it takes.
func confine(req *request) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	limits := []struct {
		what  int
		bytes uint64
	}{
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_FSIZE, 0}, // pipes are not files
	}
	if req.CacheDir != "" {
		limits[1].bytes = symbolize.MaxCacheFile
	}
	if req.Memory > 0 {
		debug.SetMemoryLimit(int64(req.Memory))
		// The runtime has reserved address space already that it never uses.
		limits = append(limits, struct {
			what  int
			bytes uint64
		}{unix.RLIMIT_AS, addressSpace() + 2*req.Memory})
	}
	for _, l := range limits {
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: l.bytes, Max: l.bytes}); err != nil {
			return fmt.Errorf("limit resource %d: %w", l.what, err)
		}
	}
	return nil
}

// ballast is never touched, so it takes no memory. But the collector counts it as
// live while it is referred to, and lets the heap of a child, which mostly lives for
// a moment, grow by as much before it first runs.
func ballast(memory uint64) []byte { return make([]byte, min(memory/16, 64<<20)) }

// addressSpace is the size of the process's mappings in bytes.
func addressSpace() uint64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 2 << 30
	}
	pages, err := strconv.ParseUint(strings.Fields(string(b) + " 0")[0], 10, 64)
	if err != nil {
		return 2 << 30
	}
	return pages * uint64(os.Getpagesize())
}

// ask makes a ReadSource that the parent answers.
func ask(to io.Writer, from io.Reader) func(string, int64) (sources.Content, error) {
	return func(path string, maxSize int64) (sources.Content, error) {
		if len(path) > maxPath {
			return sources.Content{}, fs.ErrNotExist
		}
		if err := writeBlob(to, uint64(maxSize), []byte(path)); err != nil {
			return sources.Content{}, err
		}
		at, b, err := readBlob(from, maxSource)
		if err != nil {
			return sources.Content{}, err
		}
		if at == 0 {
			if bytes.Equal(b, []byte(answerMissing)) {
				return sources.Content{}, fs.ErrNotExist
			}
			return sources.Content{}, errors.New(string(b))
		}
		return sources.Content{Text: b, ModTime: time.Unix(0, int64(at))}, nil
	}
}

// askDumps makes a FindDumps that the parent answers.
func askDumps(to io.Writer, from io.Reader) func(string) ([]core.Dump, error) {
	return func(dir string) ([]core.Dump, error) {
		if len(dir) > maxPath {
			return nil, fs.ErrNotExist
		}
		if err := writeBlob(to, listDumps, []byte(dir)); err != nil {
			return nil, err
		}
		_, b, err := readBlob(from, maxSource)
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
}

const answerMissing = "missing"
