package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/invoker"
	"ccagent/eventlog"
	"ccagent/symbolize"
	"ccagent/symbolize/worker"
)

// SymbolizeOptions describe the symbolising of a finished log.
type SymbolizeOptions struct {
	DebugFiles []string // separate debug files, or binaries before they were stripped
	SourceDirs []string // searched for sources that are not where they were
	CoreDirs   []string // searched for Core dumps, besides where the program was compiled
	// Root is the root directory that the program had, as it is seen from here: its
	// files are looked for there first. Empty for our own alone.
	Root        string
	EmbedSource bool
	Memory      uint64
	Time        time.Duration
}

// SymbolizeSummary tells what came of it.
type SymbolizeSummary struct {
	Addresses, Resolved int
	Problems            []string
}

// ErrNoSamples is returned for a log that has nothing to symbolise.
var ErrNoSamples = errors.New("the log holds no stacks")

// Symbolize gives a log its symbol tables, in place of those that it has. The
// log is replaced as a whole, and only when the new one is complete; stretches
// that could not be read are left out of it.
func Symbolize(ctx context.Context, path string, opts SymbolizeOptions) (*SymbolizeSummary, error) {
	old, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer old.Close()
	if eventlog.BeingWritten(old) {
		return nil, fmt.Errorf("symbolize %s: %w; wait for the end of the capture", path, eventlog.ErrBeingWritten)
	}
	seen, err := symbolize.ReadSeen(old)
	if err != nil {
		return nil, err
	}
	if len(seen.Addresses) == 0 {
		return nil, ErrNoSamples
	}
	owner := ownerOf(old)
	job := worker.Job{
		UID: owner.UID, GID: owner.GID,
		EmbedSource: opts.EmbedSource,
		SourceDirs:  opts.SourceDirs,
		CoreDirs:    opts.CoreDirs,
		CacheDir:    indexCache(owner.UID),
		MemoryLimit: opts.Memory,
		Timeout:     opts.Time,
	}
	debug, err := openDebugFiles(opts.DebugFiles)
	if err != nil {
		return nil, err
	}
	defer debug.Close()
	var root *os.File
	if opts.Root != "" {
		if root, err = symbolize.OpenRoot(opts.Root); err != nil {
			return nil, err
		}
		defer root.Close()
	}
	for _, m := range seen.Modules {
		file := worker.ModuleFile{ID: m.ID, Path: m.Path, Addresses: seen.Addresses[m.ID], Debug: debug.withID(m.BuildID), Root: root}
		if len(file.Addresses) == 0 {
			continue
		}
		f, binary, err := openModuleAgain(root, &m)
		switch {
		case err != nil && file.Debug != nil:
			// It has all but the code, which the walk needed and names do not.
			file.File, file.Debug = file.Debug, nil
			file.Problem = fmt.Sprintf("read from %s alone: %v", file.File.Name(), err)
		case err != nil:
			file.Problem = err.Error()
		default:
			defer f.Close()
			file.File = f
			if file.Debug == nil {
				file.Debug = debug.of(&binary)
			}
			if file.Debug == nil && !binary.HasDWARF {
				if d := symbolize.OpenDebugFile(root, m.Path, &binary); d != nil {
					defer d.Close()
					file.Debug = d
				}
			}
		}
		job.Modules = append(job.Modules, file)
	}
	sum, err := rewriteLog(ctx, old, path, owner, job)
	if err == nil {
		sum.Problems = append(debug.unused(), sum.Problems...)
	}
	return sum, err
}

// ownerOf is who may read the log: whose rights the symboliser gets.
func ownerOf(f *os.File) *invoker.User {
	who := &invoker.User{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err == nil {
		who.UID, who.GID = st.Uid, st.Gid
	}
	return who
}

// openModuleAgain opens a module's file if it is still the one that ran: below root, if
// that is not nil, or else below our own root directory.
func openModuleAgain(root *os.File, m *eventlog.Module) (*os.File, symbolize.Binary, error) {
	if root != nil {
		if f, b, err := openModuleIn(root, m); err == nil {
			return f, b, nil
		}
	}
	return openModuleIn(nil, m)
}

func openModuleIn(root *os.File, m *eventlog.Module) (*os.File, symbolize.Binary, error) {
	f, err := symbolize.OpenInRoot(root, m.Path)
	if err != nil {
		return nil, symbolize.Binary{}, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("no regular file")
	}
	if err != nil {
		f.Close()
		return nil, symbolize.Binary{}, err
	}
	b, err := symbolize.Identify(f, info.Size())
	switch {
	case err != nil:
	case len(m.BuildID) > 0 && !bytes.Equal(b.BuildID, m.BuildID):
		err = errors.New("another build than the one that ran (its build-id differs)")
	case len(m.BuildID) == 0 && (uint64(info.Size()) != m.Size || info.ModTime().UnixNano() != m.ModTime):
		err = errors.New("changed since it ran")
	}
	if err != nil {
		f.Close()
		return nil, symbolize.Binary{}, err
	}
	return f, b, nil
}

// debugFiles are the debug files that the user named.
type debugFiles []debugFile

type debugFile struct {
	*os.File
	size    int64
	buildID []byte
	used    bool
}

func openDebugFiles(paths []string) (debugFiles, error) {
	var files debugFiles
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			files.Close()
			return nil, fmt.Errorf("open debug file: %w", err)
		}
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New("no regular file")
		}
		var b symbolize.Binary
		if err == nil {
			b, err = symbolize.Identify(f, info.Size())
		}
		if err != nil {
			f.Close()
			files.Close()
			return nil, fmt.Errorf("examine debug file %s: %w", path, err)
		}
		files = append(files, debugFile{File: f, size: info.Size(), buildID: b.BuildID})
	}
	return files, nil
}

// withID gives the file with a build-id, nil if there is none.
func (d debugFiles) withID(id []byte) *os.File {
	for i := range d {
		if len(id) > 0 && bytes.Equal(d[i].buildID, id) {
			d[i].used = true
			return d[i].File
		}
	}
	return nil
}

// of gives the debug file of a binary without a build-id, nil if there is none.
func (d debugFiles) of(b *symbolize.Binary) *os.File {
	for i := range d {
		if len(b.BuildID) == 0 && b.IsDebugFile(d[i], d[i].size) {
			d[i].used = true
			return d[i].File
		}
	}
	return nil
}

// unused tells of the files that belong to no module of the log.
func (d debugFiles) unused() (problems []string) {
	for i := range d {
		if !d[i].used {
			problems = append(problems, fmt.Sprintf("--debug-file %s is of no module that this log has samples of: neither its build-id nor its checksum is one's", d[i].Name()))
		}
	}
	return problems
}

func (d debugFiles) Close() error {
	var err error
	for _, f := range d {
		err = errors.Join(err, f.Close())
	}
	return err
}

// rewriteLog copies the log beside itself, without symbol tables, appends new
// ones, and puts it in the old one's place.
func rewriteLog(ctx context.Context, old *os.File, path string, owner *invoker.User, job worker.Job) (_ *SymbolizeSummary, err error) {
	if _, err := old.Seek(0, 0); err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	defer func() {
		if err != nil {
			fresh.Close()
			os.Remove(fresh.Name())
		}
	}()
	if os.Geteuid() == 0 {
		if err := fresh.Chown(int(owner.UID), int(owner.GID)); err != nil {
			return nil, fmt.Errorf("give log to its owner: %w", err)
		}
	}
	w := eventlog.NewWriter(fresh, nil)
	last, err := copyWithoutSymbols(w, old)
	if err != nil {
		return nil, err
	}
	done, err := worker.Run(ctx, job, func(e eventlog.Event) error { return w.Write(last, eventlog.NoCap, e) })
	if err != nil {
		return nil, err
	}
	if err := errors.Join(w.Close(), fresh.Sync(), fresh.Close()); err != nil {
		return nil, fmt.Errorf("write log: %w", err)
	}
	if err := os.Rename(fresh.Name(), path); err != nil {
		return nil, fmt.Errorf("replace log: %w", err)
	}
	sum := &SymbolizeSummary{Addresses: done.Addresses, Resolved: done.Resolved, Problems: done.Problems}
	if done.Degraded != "" {
		sum.Problems = append([]string{done.Degraded}, sum.Problems...)
	}
	return sum, nil
}

// copyWithoutSymbols copies every event but symbol tables and what cannot be
// read, and gives the last event's time.
func copyWithoutSymbols(w *eventlog.Writer, old *os.File) (last uint64, err error) {
	r := eventlog.NewReader(old)
	for r.Next() {
		rec := r.Record()
		switch e := rec.Event.(type) {
		case *eventlog.ModuleSymbols, *eventlog.File, *eventlog.FileText, *eventlog.Binding,
			*eventlog.Span, *eventlog.Block, *eventlog.Locations, *eventlog.Core, *eventlog.CoreText,
			*eventlog.Malformed, *eventlog.Unknown, *eventlog.BlockMarker:
			continue
		default:
			last = max(last, rec.Time)
			if err := w.Write(rec.Time, rec.Cap, e); err != nil {
				return 0, fmt.Errorf("copy log: %w", err)
			}
		}
	}
	if err := r.Err(); err != nil {
		return 0, fmt.Errorf("read log: %w", err)
	}
	return last, nil
}
