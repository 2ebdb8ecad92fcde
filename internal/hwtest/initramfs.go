package hwtest

import (
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
)

// Initramfs are the files of a guest, by absolute path.
type Initramfs map[string]File

// File is a regular file's content and permissions.
type File struct {
	Data []byte
	Mode fs.FileMode
}

// The bits of a mode that give a file's type (cpio(5), and the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst for the format).
const (
	modeDirectory = 0o040000
	modeRegular   = 0o100000
)

// WriteTo writes a gzip-compressed newc archive: every folder before what is in it,
// and /dev, /proc, /sys and /tmp to mount at.
func (fsys Initramfs) WriteTo(w io.Writer) (int64, error) {
	counted := &countingWriter{w: w}
	zip, err := gzip.NewWriterLevel(counted, gzip.BestSpeed)
	if err != nil {
		return 0, fmt.Errorf("write initramfs: %w", err)
	}
	a := &archive{w: zip}
	for _, dir := range fsys.folders() {
		a.entry(dir, modeDirectory|0o755, nil)
	}
	for _, name := range slices.Sorted(maps.Keys(fsys)) {
		a.entry(name, modeRegular|uint32(fsys[name].Mode.Perm()), fsys[name].Data)
	}
	a.entry("/TRAILER!!!", 0, nil)
	if a.err == nil {
		a.err = zip.Close()
	}
	if a.err != nil {
		return counted.n, fmt.Errorf("write initramfs: %w", a.err)
	}
	return counted.n, nil
}

func (fsys Initramfs) folders() []string {
	dirs := map[string]bool{"/dev": true, "/proc": true, "/sys": true, "/tmp": true}
	for name := range fsys {
		for dir := path.Dir(path.Clean(name)); dir != "/" && dir != "."; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(dirs))
}

// archive writes entries; its first error stays.
type archive struct {
	w     io.Writer
	inode uint32
	err   error
}

func (a *archive) entry(name string, mode uint32, data []byte) {
	if a.err != nil {
		return
	}
	name = strings.TrimPrefix(path.Clean(name), "/")
	if uint64(len(data)) > math.MaxUint32 {
		a.err = fmt.Errorf("%s is larger than the format allows", name)
		return
	}
	a.inode++
	links := uint32(1)
	if mode&modeDirectory != 0 {
		links = 2
	}
	header := "070701"
	for _, field := range []uint32{
		a.inode, mode, 0, 0, links, 0, uint32(len(data)),
		0, 0, 0, 0, uint32(len(name) + 1), 0,
	} {
		header += fmt.Sprintf("%08X", field)
	}
	a.padded([]byte(header + name + "\x00"))
	a.padded(data)
}

// padded writes b up to a multiple of four bytes. Everything before it is one.
func (a *archive) padded(b []byte) {
	for _, part := range [][]byte{b, make([]byte, -len(b)&3)} {
		if a.err == nil {
			_, a.err = a.w.Write(part)
		}
	}
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
