// Package resymbolize looks up the names of code in logs that are finished, or were cut off.
package resymbolize

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/invoker"
	"ccagent/eventlog"
	"ccagent/internal/credentials"
	"ccagent/symbolize"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/debuginfod"
	"ccagent/symbolize/worker"
)

// Options describe the symbolising of a finished log.
type Options struct {
	Debuginfod []string // servers that are asked for debug files, as debuginfod.Parse gives them
	DebugFiles []string // separate debug files, or binaries before they were stripped
	SourceDirs []string // searched for sources that are not where they were
	CoreDirs   []string // searched for Core dumps, besides where the program was compiled
	// Root is the root directory that the program had, as it is seen from here: its
	// files are looked for there first. Empty for our own alone.
	Root        string
	EmbedSource bool
	Memory      uint64
	Time        time.Duration
	User        string // act as this user; empty for the invoking one
	// End is written into a log that does not say why it ends.
	End *eventlog.CaptureEnd
}

// Summary is the result of Run.
type Summary struct {
	Addresses, Resolved int
	Problems            []string
}

// ErrNoSamples is returned for a log that has nothing to symbolise.
var ErrNoSamples = errors.New("the log holds no stacks")

// Run writes the symbol tables of a log, in place of those that it has. The
// log is replaced as a whole, and only when the new one is complete; stretches
// that could not be read are left out of it.
func Run(ctx context.Context, path string, opts Options) (*Summary, error) {
	who, err := invoker.Find(opts.User)
	if err != nil {
		return nil, err
	}
	old, err := invoker.OpenLog(path, who)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer old.Close()
	if eventlog.BeingWritten(old.File) {
		return nil, fmt.Errorf("symbolize %s: %w; wait for the end of the capture", path, eventlog.ErrBeingWritten)
	}
	seen, err := symbolize.ReadSeen(old)
	if err != nil {
		return nil, err
	}
	if len(seen.Addresses) == 0 {
		return nil, ErrNoSamples
	}
	uid, gid, err := old.Owner()
	if err != nil {
		return nil, err
	}
	job := worker.Job{
		UID: uid, GID: gid,
		EmbedSource: opts.EmbedSource,
		CacheDir:    invoker.CacheDir(uid),
		MemoryLimit: opts.Memory,
		Timeout:     opts.Time,
	}
	// What the log names is opened with the rights of the user that could have written it.
	author := who.Credentials()
	if who.UID == 0 && uid != 0 {
		author = credentials.Credentials{UID: uid, GID: gid}
	}
	reader := author
	if reader.UID == 0 {
		reader = targetUser(&seen.Capture)
	}
	job.Reader = &reader
	servers := debuginfod.New(opts.Debuginfod, invoker.DebugCache(uid), credentials.Credentials{UID: uid, GID: gid})
	var debug debugFiles
	var root *os.File
	err = who.WithFileRights(func() (err error) {
		job.SourceDirs, job.CoreDirs = withoutLinks(opts.SourceDirs), withoutLinks(opts.CoreDirs)
		if debug, err = openDebugFiles(opts.DebugFiles); err == nil && opts.Root != "" {
			root, err = binary.OpenRoot(opts.Root)
		}
		return err
	})
	defer debug.Close()
	if err != nil {
		return nil, err
	}
	if root != nil {
		defer root.Close()
	}
	for _, m := range seen.Modules {
		file := worker.ModuleFile{ID: m.ID, Path: m.Path, Addresses: seen.Addresses[m.ID], Debug: debug.withID(m.BuildID), Root: root}
		if len(file.Addresses) == 0 {
			continue
		}
		var f, separate *os.File
		var info binary.Info
		err := author.Run(func() (err error) {
			if f, info, err = openModuleAgain(root, &m); err != nil || file.Debug != nil {
				return err
			}
			if file.Debug = debug.of(&info); file.Debug == nil && !info.HasDWARF {
				separate = binary.OpenDebugFile(root, m.Path, &info)
			}
			return nil
		})
		if err == nil && file.Debug == nil && separate == nil && !info.HasDWARF {
			separate = servers.File(ctx, &info)
		}
		switch {
		case err != nil && file.Debug != nil:
			// It has all but the code, which the walk needed and names do not.
			file.File, file.Debug = file.Debug, nil
			file.Problem = fmt.Sprintf("read from %s alone: %v", file.File.Name(), err)
		case err != nil:
			file.Problem = err.Error()
		default:
			defer f.Close()
			file.File, file.Info = f, &info
		}
		if separate != nil {
			defer separate.Close()
			file.Debug = separate
		}
		job.Modules = append(job.Modules, file)
	}
	sum, err := rewriteLog(ctx, old, job, opts.End)
	if err == nil {
		sum.Problems = slices.Concat(debug.unused(), sum.Problems, servers.Problems())
	}
	return sum, err
}

// targetUser returns the user of the program in a log of root's.
func targetUser(c *eventlog.Capture) credentials.Credentials {
	ids := c.TargetIDs
	switch {
	case len(ids) >= 2:
		return credentials.Credentials{UID: ids[0], GID: ids[1], Groups: ids[2:]}
	case c.Mode == eventlog.CaptureRecord: // of an earlier version
		return credentials.Credentials{UID: c.UID, GID: c.UID}
	}
	return credentials.Nobody()
}

// withoutLinks resolves the links of folders that the user named: to sources none is
// followed.
func withoutLinks(dirs []string) []string {
	var out []string
	for _, dir := range dirs {
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		out = append(out, dir)
	}
	return out
}

// openModuleAgain opens a module's file if it is still the one that ran: below root, if
// that is not nil, or else below our own root directory.
func openModuleAgain(root *os.File, m *eventlog.Module) (*os.File, binary.Info, error) {
	if root != nil {
		if f, b, err := openModuleIn(root, m); err == nil {
			return f, b, nil
		}
	}
	return openModuleIn(nil, m)
}

func openModuleIn(root *os.File, m *eventlog.Module) (*os.File, binary.Info, error) {
	f, err := binary.OpenInRoot(root, m.Path)
	if err != nil {
		return nil, binary.Info{}, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("no regular file")
	}
	if err != nil {
		f.Close()
		return nil, binary.Info{}, err
	}
	b, err := binary.Identify(f, info.Size())
	switch {
	case err != nil:
	case len(m.BuildID) > 0 && !bytes.Equal(b.BuildID, m.BuildID):
		err = errors.New("another build than the one that ran (its build-id differs)")
	case len(m.BuildID) == 0 && (uint64(info.Size()) != m.Size || info.ModTime().UnixNano() != m.ModTime):
		err = errors.New("changed since it ran")
	}
	if err != nil {
		f.Close()
		return nil, binary.Info{}, err
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
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) // waits for no FIFO
		if err != nil {
			files.Close()
			return nil, fmt.Errorf("open debug file: %w", err)
		}
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New("no regular file")
		}
		var b binary.Info
		if err == nil {
			b, err = binary.Identify(f, info.Size())
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

// withID returns the file with a build-id, nil if there is none.
func (d debugFiles) withID(id []byte) *os.File {
	for i := range d {
		if len(id) > 0 && bytes.Equal(d[i].buildID, id) {
			d[i].used = true
			return d[i].File
		}
	}
	return nil
}

// of returns the debug file of a binary without a build-id, nil if there is none.
func (d debugFiles) of(b *binary.Info) *os.File {
	for i := range d {
		if len(b.BuildID) == 0 && b.IsDebugFile(d[i], d[i].size) {
			d[i].used = true
			return d[i].File
		}
	}
	return nil
}

// unused returns a line on the files that belong to no module of the log.
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
func rewriteLog(ctx context.Context, old *invoker.Log, job worker.Job, end *eventlog.CaptureEnd) (*Summary, error) {
	if _, err := old.Seek(0, 0); err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	var done worker.Summary
	err := old.Replace(func(fresh *os.File) error {
		w := eventlog.NewWriter(fresh, nil)
		last, ended, err := copyWithoutSymbols(w, old.File)
		if err != nil {
			return err
		}
		if !ended && end != nil {
			if err := w.Write(last, eventlog.NoCap, end); err != nil {
				return err
			}
		}
		done, err = worker.Run(ctx, job, func(e eventlog.Event) error { return w.Write(last, eventlog.NoCap, e) })
		return errors.Join(err, w.Close())
	})
	if err != nil {
		return nil, fmt.Errorf("replace log: %w", err)
	}
	sum := &Summary{Addresses: done.Addresses, Resolved: done.Resolved, Problems: symbolize.Lines(done.Problems)}
	if done.Degraded != "" {
		sum.Problems = append([]string{done.Degraded}, sum.Problems...)
	}
	return sum, nil
}

// copyWithoutSymbols copies every event but symbol tables and what cannot be
// read, and gives the last event's time, and whether the log says why it ends.
func copyWithoutSymbols(w *eventlog.Writer, old *os.File) (last uint64, ended bool, err error) {
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
			_, ends := e.(*eventlog.CaptureEnd)
			ended = ended || ends
			var unwritable *eventlog.EventError
			if err := w.Write(rec.Time, rec.Cap, e); err != nil && !errors.As(err, &unwritable) {
				return 0, ended, fmt.Errorf("copy log: %w", err)
			}
		}
	}
	if err := r.Err(); err != nil {
		return 0, ended, fmt.Errorf("read log: %w", err)
	}
	return last, ended, nil
}
