package hwtest

import (
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/u-root/u-root/pkg/cpio"
)

// Initramfs are the files of a guest, by absolute path.
type Initramfs map[string]File

// File is a regular file's content and permissions.
type File struct {
	Data []byte
	Mode fs.FileMode
}

// Write writes a gzip-compressed archive for the kernel: every folder before what is in it, none writable by others than root,
// and /dev, /proc, /sys and /tmp to mount at.
func (fsys Initramfs) Write(w io.Writer) error {
	zip, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	dirs := map[string]bool{"/dev": true, "/proc": true, "/sys": true, "/tmp": true}
	for name := range fsys {
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	var records []cpio.Record
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		records = append(records, cpio.Directory(dir, 0o755))
	}
	for _, name := range slices.Sorted(maps.Keys(fsys)) {
		records = append(records, cpio.StaticFile(name, string(fsys[name].Data), uint64(fsys[name].Mode.Perm())))
	}
	out := cpio.Newc.Writer(zip)
	if err = cpio.WriteRecords(out, records); err == nil {
		err = cpio.WriteTrailer(out)
	}
	if err == nil {
		err = zip.Close()
	}
	if err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	return nil
}
