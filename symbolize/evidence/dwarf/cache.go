package dwarf

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
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

// Cache keeps what was made of a module's files: indices of debug information, and sections.
// A key is a hash in hexadecimal that says what it is, in which format. Whose it is the Cache
// adds by itself, by the identity of the module's files: what was made of other files, or of
// these before they changed, it does not give. What comes back need not be what was kept: it is
// checked.
type Cache interface {
	// Open gives a file to read, or nil.
	Open(module uint32, key string) *os.File
	// Create gives a file to write an index to, which Keep then takes. Either closes
	// the one that Create gave before.
	Create(module uint32) (*os.File, error)
	Keep(module uint32, key string, f *os.File) error
}

// worthCaching is the size of debug information from which on an index is kept:
// less is read in no time.
const worthCaching = 256 << 10

// loadIndex gives an index, or nil.
func loadIndex(c Cache, module uint32, key string, limit uint64) *dwarfindex.Index {
	f := c.Open(module, key)
	if f == nil {
		return nil
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || uint64(st.Size()) > limit/2 {
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
	return x
}

// storeIndex keeps an index.
func storeIndex(c Cache, module uint32, key string, x *dwarfindex.Index) error {
	data := x.Encode(nil)
	sum := sha256.Sum256(data)
	if data = append(data, sum[:]...); len(data) > MaxCacheFile {
		return nil
	}
	f, err := c.Create(module)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return fmt.Errorf("write to the cache: %w", err)
	}
	return c.Keep(module, key, f)
}

// DirCache is a Cache in a folder of the user Owner, as whom its methods run. It is
// that user's: whoever else may write to a file of it is not believed.
type DirCache struct {
	Dir   string
	Owner int
}

func (c DirCache) path(key string) string { return filepath.Join(c.Dir, key+".index") }

// Open opens an index that only the owner can have written.
func (c DirCache) Open(_ uint32, key string) *os.File {
	f, err := os.OpenFile(c.path(key), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() > MaxCacheFile || st.Mode().Perm()&0o022 != 0 {
		f.Close()
		return nil
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !ok || int(sys.Uid) != c.Owner {
		f.Close()
		return nil
	}
	now := syscall.NsecToTimeval(time.Now().UnixNano())
	_ = syscall.Futimes(int(f.Fd()), []syscall.Timeval{now, now}) // it was used; without the time it goes sooner
	return f
}

// Create makes a file that only Keep puts in an index's place, so that a reader finds an
// index whole or not at all.
func (c DirCache) Create(uint32) (*os.File, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the cache: %w", err)
	}
	f, err := os.CreateTemp(c.Dir, "new-*")
	if err != nil {
		return nil, fmt.Errorf("write to the cache: %w", err)
	}
	return f, nil
}

// Keep puts a file in an index's place.
func (c DirCache) Keep(_ uint32, key string, f *os.File) error {
	err := f.Close()
	if err == nil {
		err = os.Rename(f.Name(), c.path(key))
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("write to the cache: %w", err)
	}
	// What is small is rarely worth a look at all that is there.
	if info, err := os.Stat(c.path(key)); err == nil && uint64(info.Size()) < rand.Uint64N(pruneAfter) {
		return nil
	}
	return c.prune(maxCache)
}

// pruneAfter is how many bytes are kept, about, between two looks at what the cache holds.
const pruneAfter = 4 << 20

// Discard removes a file that Create made and that is not kept.
func (c DirCache) Discard(f *os.File) {
	f.Close()
	os.Remove(f.Name())
}

// prune removes what was not used for longest until the rest fits.
func (c DirCache) prune(limit int64) error {
	entries, err := os.ReadDir(c.Dir)
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
		if err := os.Remove(filepath.Join(c.Dir, f.Name())); err == nil {
			total -= f.Size()
		}
	}
	return nil
}

// cacheKey names what is kept of a module's files in a format.
func cacheKey(format string) string {
	sum := sha256.Sum256([]byte(format))
	return hex.EncodeToString(sum[:])
}

// index builds an index, or takes it from the cache.
func index(ctx context.Context, s dwarfindex.Sections, f *elffile.File, opt *Options) (*dwarfindex.Index, error) {
	build := dwarfindex.Options{Memory: opt.Memory, Executable: f.Executable}
	if opt.Cache == nil || s.InfoSize < worthCaching {
		return dwarfindex.Build(ctx, s, build)
	}
	key := cacheKey(dwarfindex.Format)
	if x := loadIndex(opt.Cache, opt.Module, key, opt.Memory); x != nil {
		return x, nil
	}
	x, err := dwarfindex.Build(ctx, s, build)
	if err == nil && len(x.Problems) == 0 {
		if err := storeIndex(opt.Cache, opt.Module, key, x); err != nil {
			opt.Warn("%v", err)
		}
	}
	return x, err
}
