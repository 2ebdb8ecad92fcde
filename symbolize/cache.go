package symbolize

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/elffile"
)

// MaxCacheFile bounds one file of the cache, in bytes.
const MaxCacheFile = 256 << 20

// maxCache bounds the cache; the files not used for longest go first.
const maxCache = 1 << 30

// cache keeps indices of debug information, one file each, named by a hash of
// all that an index is made of. It is the calling user's: whoever may write to
// it may as well change what the index is used for, and an index read from it
// is checked all the same.
type cache struct{ dir string }

// worthCaching is the size of debug information from which on an index is kept:
// less is read in no time.
const worthCaching = 1 << 20

func (c cache) path(key string) string { return filepath.Join(c.dir, key+".index") }

// load gives an index, or nil.
func (c cache) load(key string, limit uint64) *dwarfindex.Index {
	f, err := os.OpenFile(c.path(key), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() > MaxCacheFile || uint64(st.Size()) > limit/2 {
		return nil
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !ok || int(sys.Uid) != os.Geteuid() || st.Mode().Perm()&0o022 != 0 {
		return nil
	}
	data := make([]byte, st.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil
	}
	sum := len(data) - sha256.Size
	if sum < 0 || sha256.Sum256(data[:sum]) != [sha256.Size]byte(data[sum:]) {
		return nil
	}
	x, err := dwarfindex.Decode(data[:sum])
	if err != nil {
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(c.path(key), now, now) // it was used; without the time it goes sooner
	return x
}

// store keeps an index. It is written apart and renamed, so that a reader finds
// it whole or not at all.
func (c cache) store(key string, x *dwarfindex.Index) error {
	data := x.Encode(nil)
	sum := sha256.Sum256(data)
	if data = append(data, sum[:]...); len(data) > MaxCacheFile {
		return nil
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return fmt.Errorf("make the cache: %w", err)
	}
	f, err := os.CreateTemp(c.dir, "new-*")
	if err != nil {
		return fmt.Errorf("write to the cache: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), c.path(key))
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("write to the cache: %w", err)
	}
	return c.prune(maxCache)
}

// prune removes what was not used for longest until the rest fits.
func (c cache) prune(limit int64) error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return fmt.Errorf("read the cache: %w", err)
	}
	var files []os.FileInfo
	var total int64
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
			total += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b os.FileInfo) int { return cmp.Compare(a.ModTime().UnixNano(), b.ModTime().UnixNano()) })
	for _, f := range files {
		if total <= limit {
			break
		}
		if err := os.Remove(filepath.Join(c.dir, f.Name())); err == nil {
			total -= f.Size()
		}
	}
	return nil
}

// indexKey hashes what an index is made of. The build-id alone would not do:
// any file can claim one.
func indexKey(ctx context.Context, s dwarfindex.Sections, f *elffile.File) (string, error) {
	h := sha256.New()
	for _, p := range f.Segments {
		fmt.Fprintf(h, "%+v\n", p)
	}
	for _, part := range [][]byte{s.Abbrev, s.Str, s.LineStr, s.Line} {
		fmt.Fprintf(h, "%d\n", len(part))
		h.Write(part)
	}
	if _, err := io.Copy(h, io.NewSectionReader(s.Info, 0, int64(s.InfoSize))); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), context.Cause(ctx)
}

// index builds an index, or takes it from the cache.
func (r *run) index(ctx context.Context, s dwarfindex.Sections, f *elffile.File, opt dwarfindex.Options) (*dwarfindex.Index, error) {
	if r.job.CacheDir == "" || s.InfoSize < worthCaching {
		return dwarfindex.Build(ctx, s, opt)
	}
	key, err := indexKey(ctx, s, f)
	if err != nil {
		return nil, fmt.Errorf("read debug information: %w", err)
	}
	c := cache{r.job.CacheDir}
	if x := c.load(key, opt.Memory); x != nil {
		return x, nil
	}
	x, err := dwarfindex.Build(ctx, s, opt)
	if err == nil && len(x.Problems) == 0 {
		if err := c.store(key, x); err != nil {
			r.problem("%v", err)
		}
	}
	return x, err
}
