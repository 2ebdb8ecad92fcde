package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"ccagent/eventlog"
	"ccagent/internal/credentials"
	"ccagent/internal/sandbox"
	"ccagent/symbolize"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/evidence/dwarf"
)

// ModuleFile is a module whose addresses were seen. The files stay the
// caller's: they are neither moved nor closed.
type ModuleFile struct {
	ID        uint32
	Path      string
	File      *os.File // nil if it could not be opened; Problem says why
	Debug     *os.File // separate debug file, or nil
	Problem   string
	Addresses []symbolize.Address
	// Info is what binary.IdentifyFile says of File, so that the child need not look again; may be nil.
	Info *binary.Info
	// Root is the root directory of the program that mapped the file, to look for sources
	// in; nil where it is this process's own.
	Root *os.File
}

// Job is what Run is asked to do.
type Job struct {
	Modules []ModuleFile
	Kernel  []symbolize.Address
	// Kallsyms is /proc/kallsyms, opened with the right to see addresses in it.
	Kallsyms *os.File
	// UID and GID are the log's owner, in whose CacheDir indices are kept. They matter only
	// if this process is root; otherwise they are this process's own.
	UID, GID uint32
	// Reader is the profiled program's own user: only what that user may read is taken for
	// a source. Nil is the log's owner.
	Reader      *credentials.Credentials
	EmbedSource bool
	// Permitted remembers which sources modules name, for later jobs. Nil remembers nothing.
	Permitted  *Permitted
	SourceDirs []string
	CoreDirs   []string // searched for Core dumps, besides where the program was compiled
	// CacheDir is where indices of debug information are kept between runs: a
	// folder of the owner's, which need not exist. Empty keeps none.
	CacheDir string
	// Stretches asks for Summary.Stretches.
	Stretches bool
	// After are the last ids of tables that this job's continue.
	After symbolize.IDs
	// MemoryLimit is in bytes, 0 meaning 512 MB; Timeout 0 means two minutes.
	MemoryLimit uint64
	Timeout     time.Duration
	// Frugal is set where nobody waits for the result (sandbox.Config): then indices are on the disk, and not in memory, as soon as they are kept.
	Frugal bool
}

// Summary is the result of Run.
type Summary struct {
	symbolize.Summary
	// Degraded says in words what was left out because the child failed or went
	// over its budget; empty if nothing was.
	Degraded string
	// After are the last ids that were used.
	After symbolize.IDs
}

const (
	defaultMemory  = 512 << 20
	defaultTimeout = 2 * time.Minute
	// grace is what the child has beyond its time to say that it is over.
	grace = 5 * time.Second
)

// Run symbolises in a child and passes its events to sink, each valid until
// sink returns. The error is sink's or ctx's, or reports that no child could be
// started; a child's own failure is in Summary.Degraded.
func Run(ctx context.Context, job Job, sink func(eventlog.Event) error) (Summary, error) {
	if job.MemoryLimit == 0 {
		job.MemoryLimit = defaultMemory
	}
	if job.Timeout == 0 {
		job.Timeout = defaultTimeout
	}
	memory, less := sandbox.FitMemory(job.MemoryLimit)
	job.MemoryLimit = memory
	v := newValidator(&job, sink)
	sum, err := runChild(ctx, &job, v, false)
	sum.Degraded = less
	var failed *childError
	if errors.As(err, &failed) && ctx.Err() == nil {
		if sum.Degraded = failed.Error(); less != "" {
			sum.Degraded += " (" + less + ")"
		}
		job.Modules = v.remaining(job.Modules)
		job.Kernel = v.remainingKernel(job.Kernel)
		var again Summary
		again, err = runChild(ctx, &job, v, true)
		sum.add(again.Summary)
		if errors.As(err, &failed) {
			sum.Degraded += "; without debug information: " + failed.Error()
			err = nil
		}
	}
	sum.After = v.ids
	if err != nil {
		return sum, fmt.Errorf("symbolise: %w", err)
	}
	return sum, nil
}

func (s *Summary) add(o symbolize.Summary) {
	s.Addresses += o.Addresses
	s.Resolved += o.Resolved
	s.InBlocks += o.InBlocks
	s.Blocks += o.Blocks
	s.Spans += o.Spans
	s.Bindings += o.Bindings
	s.Files += o.Files
	s.FilesEmbed += o.FilesEmbed
	s.Cores += o.Cores
	s.Stretches = append(s.Stretches, o.Stretches...)
	s.Problems = append(s.Problems, o.Problems...)
}

// childError reports that the child failed.
type childError struct{ err error }

func (e *childError) Error() string { return e.err.Error() }
func (e *childError) Unwrap() error { return e.err }

func runChild(ctx context.Context, job *Job, v *validator, symbolsOnly bool) (Summary, error) {
	var sum Summary
	req, files := makeRequest(job, v, symbolsOnly)
	events, theirs, err := os.Pipe()
	if err != nil {
		return sum, fmt.Errorf("make a pipe: %w", err)
	}
	defer events.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, job.Timeout+grace, errTime)
	defer cancel()
	config := sandbox.Config{Role: symboliserRole, Name: "ccagent-symbolize", Memory: job.MemoryLimit, Frugal: job.Frugal}
	if job.CacheDir != "" {
		config.FileSize = dwarf.MaxCacheFile
	}
	answers, err := newAnswers(ctx, job)
	if err != nil {
		theirs.Close()
		return sum, err
	}
	defer answers.close()
	c, err := sandbox.Start(ctx, config, append([]*os.File{theirs}, files...)...)
	theirs.Close()
	var exit *exec.ExitError
	if errors.As(err, &exit) { // it was started, and ended at once
		return sum, &childError{describe(err, nil)}
	}
	if err != nil {
		return sum, fmt.Errorf("start the symboliser: %w", err)
	}
	served := make(chan error, 1)
	go func() {
		// A child that dies early hangs up; Wait returns why.
		_ = send(c.Conn, 0, req)
		err := answers.serve(c.Conn)
		if err != nil {
			c.Kill()
		}
		served <- err
	}()
	readErr := v.read(events)
	if readErr != nil {
		c.Kill()
	}
	serveErr := <-served // all that the child said is read before Wait hangs up
	waitErr := c.Wait()
	switch {
	case v.sinkErr != nil:
		return sum, v.sinkErr
	case context.Cause(ctx) == errTime:
		return sum, &childError{errTime}
	case serveErr != nil:
		return sum, &childError{serveErr}
	case waitErr != nil && readErr == nil:
		if cause := ctx.Err(); cause != nil {
			return sum, cause
		}
		return sum, &childError{describe(waitErr, c.Stderr())}
	case errors.Is(readErr, errTorn) && len(c.Stderr()) > 0: // its stderr says more
		return sum, &childError{describe(waitErr, c.Stderr())}
	case readErr != nil:
		return sum, &childError{readErr}
	}
	if err := json.Unmarshal(answers.summary, &sum.Summary); err != nil {
		return sum, &childError{fmt.Errorf("read the symboliser's summary: %w", err)}
	}
	sum.Stretches = v.stretches(sum.Stretches)
	return sum, nil
}

// symboliserRole is what the child does, which tests of what it cannot do change.
var symboliserRole = roleSymbolise

// describe says in a line why a child failed.
func describe(err error, stderr []byte) error {
	text := string(stderr)
	if strings.Contains(text, "out of memory") || strings.Contains(text, "cannot allocate memory") ||
		strings.Contains(text, "pthread_create failed") {
		return errors.New("memory budget spent (--symbolize-memory)")
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signal() == syscall.SIGKILL {
			return errors.New("symboliser was killed, as the kernel does for lack of memory")
		}
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(text), "\n"); line != "" {
		return fmt.Errorf("symboliser failed: %s", strings.ToValidUTF8(line, "�"))
	}
	return fmt.Errorf("symboliser failed: %w", err)
}

// makeRequest lists the job's files, by their numbers among the child's.
func makeRequest(job *Job, v *validator, symbolsOnly bool) (*request, []*os.File) {
	req := &request{
		EmbedSource: job.EmbedSource, SourceDirs: job.SourceDirs, CoreDirs: job.CoreDirs, Cache: job.CacheDir != "",
		SymbolsOnly: symbolsOnly, Stretches: job.Stretches && !symbolsOnly,
		After: v.ids, Memory: job.MemoryLimit, Timeout: job.Timeout,
	}
	if len(job.Kernel) > 0 {
		var kallsyms io.Reader
		if job.Kallsyms != nil {
			// The position is set back: a second child gets the same text.
			if _, err := job.Kallsyms.Seek(0, io.SeekStart); err == nil {
				kallsyms = job.Kallsyms
			}
		}
		req.Kernel = symbolize.NameKernel(kallsyms, job.Kernel)
	}
	var files []*os.File
	give := func(f *os.File) int {
		files = append(files, f)
		return fileEvents + len(files)
	}
	roots := map[*os.File]int{}
	for _, m := range job.Modules {
		r := requestModule{ID: m.ID, Path: m.Path, Problem: m.Problem, Addresses: m.Addresses, Info: m.Info}
		if m.Root != nil {
			if roots[m.Root] == 0 {
				roots[m.Root] = len(roots) + 1
			}
			r.Root = roots[m.Root]
		}
		if m.File != nil {
			if st, err := m.File.Stat(); err == nil && st.Mode().IsRegular() {
				r.File, r.Size, r.ModTime = give(m.File), st.Size(), st.ModTime()
			}
		}
		if m.Debug != nil {
			if st, err := m.Debug.Stat(); err == nil && st.Mode().IsRegular() {
				r.Debug, r.DebugSize = give(m.Debug), st.Size()
			}
		}
		req.Modules = append(req.Modules, r)
	}
	return req, files
}
