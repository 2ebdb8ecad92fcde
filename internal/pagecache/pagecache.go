// Package pagecache tells the kernel to drop pages of files from its cache when nobody will read the files soon. The kernel charges
// cached pages to the control group of the process that wrote or read them. A daemon that writes all the time would so be charged more and more.
package pagecache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Begin has the kernel begin to bring a file to the disk, which it would do half a minute later. It does not wait until that is done. Not all file
// systems can do so, which is no harm.
func Begin(f *os.File) { _ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE) }

// Flush brings a file to the disk, and gives it up. It waits for the disk.
func Flush(f *os.File) error {
	const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	if err := unix.SyncFileRange(int(f.Fd()), 0, 0, all); err != nil {
		return fmt.Errorf("write %s back: %w", f.Name(), err)
	}
	return drop(f)
}

// Drop gives files up that are on the disk: what is not there yet stays. A file that is gone is no problem.
func Drop(paths []string) error {
	var errs []error
	for _, path := range paths {
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = drop(f)
			f.Close() // it was only read
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func drop(f *os.File) error {
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("give up the cache of %s: %w", f.Name(), err)
	}
	return nil
}
