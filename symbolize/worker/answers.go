package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"ccagent/internal/credentials"
	"ccagent/internal/pagecache"
	"ccagent/internal/sandbox"
	"ccagent/symbolize/core"
	"ccagent/symbolize/evidence/dwarf"
	"ccagent/symbolize/sources"
)

// answers serves a child's requests for files. The child may have been taken over by a crafted
// file, so it gets only files that the modules name and the profiled program's user may read.
type answers struct {
	ctx     context.Context // of the child
	job     *Job
	modules map[uint32]*ModuleFile
	names   map[uint32]*names
	room    int             // bytes of names that may still be held
	dumps   map[string]bool // Core dumps that were listed, which may be read
	cache   *dwarf.DirCache
	pending *os.File // an index that is being written
	created int      // indices that were begun
	summary []byte   // the child's last word
	reader  *sources.Reader
}

func newAnswers(ctx context.Context, job *Job) (*answers, error) {
	a := &answers{ctx: ctx, room: maxTotal, job: job, modules: map[uint32]*ModuleFile{}, names: map[uint32]*names{}, dumps: map[string]bool{}}
	for i := range job.Modules {
		a.modules[job.Modules[i].ID] = &job.Modules[i]
	}
	if job.CacheDir != "" {
		owner := os.Geteuid()
		if owner == 0 {
			owner = int(job.UID)
		}
		a.cache = &dwarf.DirCache{Dir: job.CacheDir, Owner: owner}
	}
	reader := a.owner()
	if job.Reader != nil {
		reader = *job.Reader
	}
	var err error
	a.reader, err = sources.NewReader(reader)
	return a, err
}

// close discards indices that were not kept, once the child has ended.
func (a *answers) close() {
	a.discard()
	a.reader.Close()
}

func (a *answers) owner() credentials.Credentials {
	if own := os.Geteuid(); own != 0 {
		return credentials.Credentials{UID: uint32(own), GID: uint32(os.Getegid())} // there is no choice
	}
	return credentials.Credentials{UID: a.job.UID, GID: a.job.GID}
}

// asOwner runs f with the rights of the log's owner to files.
func (a *answers) asOwner(f func() error) error {
	owner := a.owner()
	return owner.Run(f)
}

var (
	errNotNamed = errors.New("refused: the module's debug information does not name it")
	errProtocol = errors.New("the symboliser asked for what there is not")
)

// serve answers a child until it hangs up or breaks the rules.
func (a *answers) serve(c *sandbox.Conn) error {
	for {
		head, b, err := c.Receive(maxSummary)
		if err != nil {
			return nil // it has ended; its status says how
		}
		if head == sendSummary {
			a.summary = b
			continue
		}
		var q question
		if len(b) > maxQuestion || json.Unmarshal(b, &q) != nil || a.modules[q.Module] == nil {
			return errProtocol
		}
		if err := a.answer(c, head, &q); err != nil {
			return err
		}
	}
}

func (a *answers) answer(c *sandbox.Conn, head uint64, q *question) error {
	switch head {
	case askSource:
		src, err := a.source(&q.Ref, min(q.Max, maxSource))
		if err != nil {
			return refuse(c, err)
		}
		return c.Send(uint64(max(src.ModTime.UnixNano(), gave)), src.Text)
	case askDumps:
		list, err := a.findDumps(q)
		if err != nil {
			return refuse(c, err)
		}
		return c.Send(gave, list)
	case askIndex:
		f, err := a.openIndex(q)
		if err != nil {
			return refuse(c, err)
		}
		defer f.Close()
		return errors.Join(c.Send(gave, nil), c.SendFiles(f))
	case askNewIndex:
		if err := a.createIndex(); err != nil {
			return refuse(c, err)
		}
		return errors.Join(c.Send(gave, nil), c.SendFiles(a.pending))
	case askKeepIndex:
		if err := a.keepIndex(q); err != nil {
			return refuse(c, err)
		}
		return c.Send(gave, nil)
	}
	return errProtocol
}

func refuse(c *sandbox.Conn, err error) error {
	text := err.Error()
	if errors.Is(err, fs.ErrNotExist) {
		text = answerMissing
	}
	return c.Send(failed, []byte(text))
}

// source reads a source file for a child. All that decides whether it may be read is here
// and in readSource.
func (a *answers) source(ref *sources.Ref, maxSize int64) (sources.Content, error) {
	m := a.modules[ref.Module]
	if m != nil && sources.Named(ref.Path()) && !a.exists(m, ref) {
		return sources.Content{}, fs.ErrNotExist // that all strings of the files are looked through for nothing is the usual case
	}
	if !a.mayRead(m, ref) {
		return sources.Content{}, fmt.Errorf("read %s: %w", ref.Path(), errNotNamed)
	}
	if ref.InRoot && m.Root == nil {
		return sources.Content{}, fs.ErrNotExist
	}
	return a.readSource(m, ref, maxSize)
}

// exists reports whether there is a source file, also one that the child may not read: the program's user, in
// whose hands a child that was taken over would be, can find that out.
func (a *answers) exists(m *ModuleFile, ref *sources.Ref) bool {
	var root *os.File
	if ref.InRoot {
		root = m.Root
	}
	return (root != nil || !ref.InRoot) && a.reader.Exists(root, ref.Path())
}

// readSource reads a source file that the module's debug information names.
func (a *answers) readSource(m *ModuleFile, ref *sources.Ref, maxSize int64) (sources.Content, error) {
	var root *os.File
	if ref.InRoot {
		root = m.Root
	}
	return a.reader.Read(root, ref.Path(), maxSize)
}

// mayRead reports whether the module's files name a source file, or it is a Core dump
// that was found for the child.
func (a *answers) mayRead(m *ModuleFile, ref *sources.Ref) bool {
	if ref.Dir == "" && !ref.InRoot && a.dumps[ref.Name] {
		return true
	}
	known, is, remember := a.job.Permitted.lookup(m, ref)
	if known {
		return is
	}
	is = a.named(m, ref)
	if remember != nil && a.ctx.Err() == nil { // else not all was looked through
		remember(is)
	}
	return is
}

// named reports whether the module's files name a source file.
func (a *answers) named(m *ModuleFile, ref *sources.Ref) bool {
	n := a.namesOf(m)
	if ref.Dir == "" {
		return filepath.IsAbs(ref.Name) && n.file(ref.Name)
	}
	return n.file(ref.Name) && (n.dir(ref.Dir) || slices.Contains(a.job.SourceDirs, ref.Dir) || above(ref.Dir, m.Path))
}

// above reports whether a folder is one of those that the executable lies in: an info
// table map does not record where the compiler ran, which was mostly there.
func above(dir, path string) bool {
	for d, n := filepath.Dir(path), 0; filepath.IsAbs(d) && d != "/" && n < 8; d, n = filepath.Dir(d), n+1 {
		if d == dir {
			return true
		}
	}
	return false
}

func (a *answers) namesOf(m *ModuleFile) *names {
	n := a.names[m.ID]
	if n == nil {
		n = findNames(a.ctx, m, a.job.MemoryLimit/4, &a.room)
		a.names[m.ID] = n
	}
	return n
}

// findDumps lists the Core dumps below a folder that the program was compiled in.
func (a *answers) findDumps(q *question) ([]byte, error) {
	if !slices.Contains(a.job.CoreDirs, q.Tree) && !a.namesOf(a.modules[q.Module]).dir(q.Tree) {
		return nil, fmt.Errorf("look for Core in %s: %w", q.Tree, errNotNamed)
	}
	var dumps []core.Dump
	var err error
	a.reader.Do(func() { dumps, err = core.FindDumps(q.Tree) })
	b, jsonErr := json.Marshal(dumpList{dumps, errors.Is(err, core.ErrManyFiles)})
	for ; jsonErr == nil && len(b) > maxSource; b, jsonErr = json.Marshal(dumpList{dumps, true}) {
		dumps = dumps[:len(dumps)/2]
	}
	for _, d := range dumps {
		a.dumps[d.Path] = true
	}
	return b, jsonErr
}

// indexKey is a module's own name for an index: the child cannot put one in place of
// another file's.
func (a *answers) indexKey(q *question) (string, error) {
	sum, err := hex.DecodeString(q.Key)
	if err != nil || len(sum) != sha256.Size || a.cache == nil {
		return "", errProtocol
	}
	h := sha256.New()
	h.Write(sum)
	fmt.Fprintln(h, builder())
	m := a.modules[q.Module]
	for _, f := range []*os.File{m.File, m.Debug} {
		if f == nil {
			fmt.Fprintln(h, "none")
			continue
		}
		info, err := f.Stat()
		if err != nil {
			return "", err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return "", errProtocol
		}
		fmt.Fprintln(h, st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (a *answers) openIndex(q *question) (f *os.File, err error) {
	key, err := a.indexKey(q)
	if err != nil {
		return nil, err
	}
	err = a.asOwner(func() error {
		if f = a.cache.Open(q.Module, key); f == nil {
			return fs.ErrNotExist
		}
		return nil
	})
	return f, err
}

func (a *answers) createIndex() error {
	// Each stays on the disk while the child has it open, also one that is not kept.
	const spare = 16
	if a.cache == nil || a.created >= 2*len(a.modules)+spare {
		return errProtocol
	}
	a.created++
	a.discard()
	return a.asOwner(func() (err error) {
		a.pending, err = a.cache.Create(0)
		return err
	})
}

func (a *answers) keepIndex(q *question) error {
	key, err := a.indexKey(q)
	if err != nil {
		return err
	}
	f := a.pending
	if f == nil {
		return errProtocol
	}
	a.pending = nil
	if a.job.Frugal {
		_ = pagecache.Flush(f) // else the kernel does it later
	}
	return a.asOwner(func() error { return a.cache.Keep(q.Module, key, f) })
}

// discard removes an index that was not kept.
func (a *answers) discard() {
	f := a.pending
	if f == nil {
		return
	}
	a.pending = nil
	_ = a.asOwner(func() error { a.cache.Discard(f); return nil })
}
