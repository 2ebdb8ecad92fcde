package worker

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
	"syscall"

	"ccagent/internal/credentials"
	"ccagent/symbolize/cfi"
	"ccagent/symbolize/evidence/dwarf"
)

// UnwindCache keeps compiled call frame information between captures, in the folder where
// indices of debug information are kept (see dwarf.DirCache). A table is kept under the
// identity of its file: device, inode, size, and the times of the last changes of contents and
// of the inode, of which a user can set only the first. What comes back is checked as a child's
// answer is.
type UnwindCache struct {
	Dir      string // the owner's folder, which need not exist; empty keeps none
	UID, GID uint32 // owner; they matter only if this process is root
}

// unwindMagic begins a kept table, and stands for its format.
const unwindMagic = "ccagent unwind 2\n"

// builder identifies this program: another may compile other tables of a file.
var builder = sync.OnceValue(func() string {
	info, err := os.Stat("/proc/self/exe")
	if err != nil {
		return ""
	}
	return identity(info)
})

// identity is a file's.
func identity(info os.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintln(st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim)
}

// key names a file's table; empty if it has no identity.
func (c *UnwindCache) key(f *os.File) string {
	info, err := f.Stat()
	if err != nil || c == nil || c.Dir == "" || builder() == "" || identity(info) == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(unwindMagic + builder() + identity(info)))
	return "unwind-" + hex.EncodeToString(sum[:])
}

// as runs f on the folder with the owner's rights.
func (c *UnwindCache) as(f func(dwarf.DirCache) error) error {
	owner := credentials.Credentials{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	if owner.UID == 0 {
		owner = credentials.Credentials{UID: c.UID, GID: c.GID}
	}
	return owner.Run(func() error { return f(dwarf.DirCache{Dir: c.Dir, Owner: int(owner.UID)}) })
}

// load returns the table that is kept under a key.
func (c *UnwindCache) load(key string) (t UnwindTable, ok bool) {
	if key == "" {
		return t, false
	}
	err := c.as(func(dir dwarf.DirCache) error {
		f := dir.Open(0, key)
		if f == nil {
			return os.ErrNotExist
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		b := make([]byte, info.Size()) // DirCache bounds it
		if _, err := io.ReadFull(f, b); err != nil {
			return err
		}
		t, err = decodeUnwind(b)
		return err
	})
	return t, err == nil
}

// keep keeps a table, also one without rows: a capture whose program and libraries all have one
// starts no child. What fails costs the next capture time.
func (c *UnwindCache) keep(key string, t *UnwindTable) {
	if key == "" || t.Err != nil {
		return
	}
	b := encodeUnwind(t)
	if len(b) > dwarf.MaxCacheFile {
		return
	}
	_ = c.as(func(dir dwarf.DirCache) error {
		f, err := dir.Create(0)
		if err != nil {
			return err
		}
		if _, err := f.Write(b); err != nil {
			dir.Discard(f)
			return err
		}
		return dir.Keep(0, key, f)
	})
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeUnwind is the form in which a table is kept: the magic; the base, the numbers of bytes of
// rows and of rules, 1 if it is paged else 0, 64 bits each; rows, rules; for each page its number and the number
// of bytes of its rows, 32 bits, and its rows; a checksum of all, 32 bits.
func encodeUnwind(t *UnwindTable) []byte {
	le := binary.LittleEndian
	size := unwindHead + len(t.Rows) + len(t.Rules) + 4
	for i := range t.Pages {
		size += 8 + len(t.Pages[i].Rows)
	}
	b := append(make([]byte, 0, size), unwindMagic...)
	b = le.AppendUint64(b, t.Base)
	b = le.AppendUint64(b, uint64(len(t.Rows)))
	b = le.AppendUint64(b, uint64(len(t.Rules)))
	paged := uint64(0)
	if t.Paged {
		paged = 1
	}
	b = le.AppendUint64(b, paged)
	b = append(append(b, t.Rows...), t.Rules...)
	for i := range t.Pages {
		b = le.AppendUint32(b, t.Pages[i].Number)
		b = le.AppendUint32(b, uint32(len(t.Pages[i].Rows)))
		b = append(b, t.Pages[i].Rows...)
	}
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// unwindHead is the number of bytes before a kept table's rows.
const unwindHead = len(unwindMagic) + 32

var errNotKept = errors.New("not a kept table")

func decodeUnwind(b []byte) (t UnwindTable, err error) {
	le := binary.LittleEndian
	end := len(b) - 4
	if end < unwindHead || !bytes.HasPrefix(b, []byte(unwindMagic)) || crc32.Checksum(b[:end], castagnoli) != le.Uint32(b[end:]) {
		return t, errNotKept
	}
	numbers := b[len(unwindMagic):]
	t.Base = le.Uint64(numbers)
	rows, rules, paged := le.Uint64(numbers[8:]), le.Uint64(numbers[16:]), le.Uint64(numbers[24:])
	b = b[unwindHead:end]
	if rows > uint64(len(b)) || rows > uint64(cfi.DefaultLimits.Rows)*cfi.RowSize ||
		rules > uint64(len(b))-rows || rules > maxUnwindRules*cfi.RuleSize || paged > 1 {
		return t, errNotKept
	}
	t.Rows, t.Rules, b = b[:rows:rows], b[rows:rows+rules:rows+rules], b[rows+rules:]
	t.Paged = paged == 1
	for len(b) > 0 {
		if len(b) < 8 || uint64(le.Uint32(b[4:])) > uint64(len(b)-8) || !t.Paged {
			return t, errNotKept
		}
		size := 8 + int(le.Uint32(b[4:]))
		page := UnwindPage{le.Uint32(b), b[8:size:size]}
		if err := t.checkPage(&page); err != nil {
			return t, err
		}
		t.Pages, b = append(t.Pages, page), b[size:]
	}
	return t, t.check()
}
