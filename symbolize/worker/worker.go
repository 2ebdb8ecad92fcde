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
	"strings"
	"time"

	"ccagent/eventlog"
	"ccagent/internal/credentials"
	"ccagent/symbolize"
	"ccagent/symbolize/core"
	"ccagent/symbolize/sources"
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
	// Root is the root directory of the program that mapped the file, to look for sources
	// in; nil where it is this process's own.
	Root *os.File
}

// Job is what Run is asked to do.
type Job struct {
	Modules []ModuleFile
	Kernel  []symbolize.Address
	// Kallsyms is /proc/kallsyms, opened by one who may see addresses in it.
	Kallsyms *os.File
	// UID and GID are the log's owner, whose rights the child has. Where the
	// owner is root the child runs as nobody. They matter only if this process
	// is root; otherwise the child runs as this process does.
	UID, GID uint32
	// Reader is the profiled program's own user: only what that user may read is taken for
	// a source. Nil is the log's owner.
	Reader      *credentials.Credentials
	EmbedSource bool
	SourceDirs  []string
	CoreDirs    []string // searched for Core dumps, besides where the program was compiled
	// CacheDir is where indices of debug information are kept between runs: a
	// folder of the owner's, which need not exist. The child reads and writes it
	// as itself, so it is left alone where the owner is root and the child is
	// not. Empty keeps none.
	CacheDir string
	// After are the last ids of tables that this job's continue.
	After symbolize.IDs
	// MemoryLimit is in bytes, 0 meaning 512 MB; Timeout 0 means two minutes.
	MemoryLimit uint64
	Timeout     time.Duration
}

// Summary is what came of it.
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
	nobody         = 65534
	// grace is what the child has beyond its time to say that it is over.
	grace = 5 * time.Second
)

// Run symbolises in a child and passes its events to sink, each valid until
// sink returns. The error is sink's or ctx's, or tells that no child could be
// started; a child's own failure is told in Summary.Degraded.
func Run(ctx context.Context, job Job, sink func(eventlog.Event) error) (Summary, error) {
	if job.MemoryLimit == 0 {
		job.MemoryLimit = defaultMemory
	}
	if job.Timeout == 0 {
		job.Timeout = defaultTimeout
	}
	v := newValidator(&job, sink)
	sum, err := runChild(ctx, &job, v, false)
	var failed *childError
	if errors.As(err, &failed) && ctx.Err() == nil {
		sum.Degraded = failed.Error()
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
	s.Problems = append(s.Problems, o.Problems...)
}

// childError tells that the child failed.
type childError struct{ err error }

func (e *childError) Error() string { return e.err.Error() }
func (e *childError) Unwrap() error { return e.err }

func runChild(ctx context.Context, job *Job, v *validator, symbolsOnly bool) (Summary, error) {
	var sum Summary
	p, err := newPipes()
	if err != nil {
		return sum, err
	}
	defer p.close()
	req, files, roots := makeRequest(job, v, symbolsOnly)
	ctx, cancel := context.WithTimeoutCause(ctx, job.Timeout+grace, errTime)
	defer cancel()
	var stdout, stderr bounded
	stdout.limit, stderr.limit = maxSummary, 8<<10
	cmd := command(ctx, roleSymbolise, job.UID, job.GID)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.ExtraFiles = append([]*os.File{p.jobR, p.eventsW, p.askW, p.answerR}, files...)
	if os.Geteuid() == 0 && job.UID == 0 {
		req.CacheDir = ""
		req.AskSource = true
	}
	reader, err := sources.NewReader(job.reader())
	if err != nil {
		return sum, err
	}
	ended, err := start(cmd)
	if err != nil {
		reader.Close()
		return sum, fmt.Errorf("start the symboliser: %w", err)
	}
	p.closeChildEnds()
	go func() {
		// A child that dies early closes the pipe; Wait tells why it did.
		_ = writeJSON(p.jobW, req)
		p.jobW.Close()
	}()
	go answer(p.askR, p.answerW, roots, reader)

	readErr := v.read(p.eventsR)
	if readErr != nil {
		cancel()
	}
	waitErr := <-ended
	switch {
	case v.sinkErr != nil:
		return sum, v.sinkErr
	case context.Cause(ctx) == errTime:
		return sum, &childError{errTime}
	case waitErr != nil && readErr == nil:
		if cause := ctx.Err(); cause != nil {
			return sum, cause
		}
		return sum, &childError{describe(waitErr, stderr.Bytes())}
	case errors.Is(readErr, errTorn) && stderr.Len() > 0: // it broke off: its own words tell more
		return sum, &childError{describe(waitErr, stderr.Bytes())}
	case readErr != nil:
		return sum, &childError{readErr}
	}
	if err := json.Unmarshal(stdout.Bytes(), &sum.Summary); err != nil {
		return sum, &childError{fmt.Errorf("read the symboliser's summary: %w", err)}
	}
	return sum, nil
}

// describe says in a line why a child failed.
func describe(err error, stderr []byte) error {
	text := string(stderr)
	if strings.Contains(text, "out of memory") || strings.Contains(text, "cannot allocate memory") ||
		strings.Contains(text, "pthread_create failed") {
		return errors.New("memory budget spent (--symbolize-memory)")
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(text), "\n"); line != "" {
		return fmt.Errorf("symboliser failed: %s", strings.ToValidUTF8(line, "�"))
	}
	return fmt.Errorf("symboliser failed: %w", err)
}

// makeRequest lists the job's files as descriptors, and the root directories by theirs.
func makeRequest(job *Job, v *validator, symbolsOnly bool) (*request, []*os.File, map[int]*os.File) {
	req := &request{
		Kernel: job.Kernel, EmbedSource: job.EmbedSource, SourceDirs: job.SourceDirs, CoreDirs: job.CoreDirs, CacheDir: job.CacheDir, SymbolsOnly: symbolsOnly,
		After: v.ids, Memory: job.MemoryLimit, Timeout: job.Timeout,
	}
	var files []*os.File
	give := func(f *os.File) int {
		if f == nil {
			return 0
		}
		files = append(files, f)
		return fdModules + len(files) - 1
	}
	roots, given := map[int]*os.File{}, map[*os.File]int{}
	for _, m := range job.Modules {
		if m.Root != nil && given[m.Root] == 0 {
			fd := give(m.Root)
			given[m.Root], roots[fd] = fd, m.Root
		}
		r := requestModule{ID: m.ID, Path: m.Path, Problem: m.Problem, Addresses: m.Addresses, Root: given[m.Root]}
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
	req.Kallsyms = give(job.Kallsyms)
	return req, files, roots
}

func (job *Job) reader() credentials.Credentials {
	if job.Reader != nil {
		return *job.Reader
	}
	return credentials.Credentials{UID: job.UID, GID: job.GID}
}

// answer reads sources for a child until it hangs up.
func answer(from io.Reader, to io.WriteCloser, roots map[int]*os.File, reader *sources.Reader) {
	defer reader.Close()
	defer to.Close()
	for {
		maxSize, path, err := readBlob(from, maxPath)
		if err != nil {
			return
		}
		if maxSize == listDumps {
			if answerDumps(to, string(path), reader) != nil {
				return
			}
			continue
		}
		var src sources.Content
		root, name, err := inRoot(string(path), roots)
		if err == nil {
			src, err = reader.Read(root, name, int64(min(maxSize, maxSource)))
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = writeBlob(to, 0, []byte(answerMissing))
		case err != nil:
			err = writeBlob(to, 0, []byte(err.Error()))
		default:
			err = writeBlob(to, uint64(max(src.ModTime.UnixNano(), 1)), src.Text)
		}
		if err != nil {
			return
		}
	}
}

func answerDumps(to io.Writer, dir string, reader *sources.Reader) error {
	var dumps []core.Dump
	var err error
	reader.Do(func() { dumps, err = core.FindDumps(dir) })
	b, err := json.Marshal(dumpList{dumps, errors.Is(err, core.ErrManyFiles)})
	for ; err == nil && len(b) > maxSource; b, err = json.Marshal(dumpList{dumps, true}) {
		dumps = dumps[:len(dumps)/2]
	}
	if err != nil {
		return err
	}
	return writeBlob(to, 0, b)
}

// pipes connect parent and child.
type pipes struct {
	jobR, jobW, eventsR, eventsW, askR, askW, answerR, answerW *os.File
}

func newPipes() (*pipes, error) {
	p := &pipes{}
	for _, ends := range [][2]**os.File{{&p.jobR, &p.jobW}, {&p.eventsR, &p.eventsW}, {&p.askR, &p.askW}, {&p.answerR, &p.answerW}} {
		r, w, err := os.Pipe()
		if err != nil {
			p.close()
			return nil, fmt.Errorf("make a pipe: %w", err)
		}
		*ends[0], *ends[1] = r, w
	}
	return p, nil
}

func (p *pipes) closeChildEnds() {
	for _, f := range []*os.File{p.jobR, p.eventsW, p.askW, p.answerR} {
		f.Close()
	}
}

// close closes all ends; those that are closed already stay so.
func (p *pipes) close() {
	for _, f := range []*os.File{p.jobR, p.jobW, p.eventsR, p.eventsW, p.askR, p.askW, p.answerR, p.answerW} {
		if f != nil {
			f.Close()
		}
	}
}

// bounded keeps the first bytes that are written to it.
type bounded struct {
	bytes.Buffer
	limit int
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.limit - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
