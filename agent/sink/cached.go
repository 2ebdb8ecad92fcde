package sink

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Uncache has the kernel give up what it keeps in memory of files that nobody reads for now. It counts that as memory of whoever wrote
// them until it needs it for something else, and a daemon writes all the time. What is not on the disk yet stays. A file that is gone is no problem.
func Uncache(paths []string) error {
	var errs []error
	for _, path := range paths {
		if err := uncache(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func uncache(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close() // it was only read
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("give up the cache of %s: %w", path, err)
	}
	return nil
}

// writeBack has the kernel begin to bring a file to the disk, which it would do half a minute later, without waiting for it. Not all file systems
// can, which is no harm.
func writeBack(f *os.File) { _ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE) }
