package process

import (
	"ccagent/symbolize/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// maxRoots bounds the root directories that are held open.
const maxRoots = 64

// roots are the root directories of profiled processes in a chroot or a container, each
// held open once, so that their files can be found when the processes have ended. So are
// the mount namespaces: they go with their last process, and take their mounts along.
type roots struct {
	byKey  map[rootKey]*os.File
	mounts []*os.File
}

// rootKey identifies a root directory: what is below it depends on the mounts as well.
type rootKey struct {
	dev, inode, mounts uint64
}

// of returns a process's root directory, nil where it is the agent's own, or not known.
func (rs *roots) of(pid uint32) *os.File {
	key, f, mounts, err := openRoot(fmt.Sprintf("/proc/%d", pid))
	if err != nil {
		return nil
	}
	own, ours, oursToo, err := openRoot("/proc/self")
	if err == nil {
		ours.Close()
		oursToo.Close()
	}
	have, known := rs.byKey[key]
	if err != nil || key == own || known || len(rs.byKey) >= maxRoots {
		f.Close()
		mounts.Close()
		return have
	}
	if rs.byKey == nil {
		rs.byKey = make(map[rootKey]*os.File)
	}
	rs.byKey[key] = f
	rs.mounts = append(rs.mounts, mounts)
	return f
}

// openRoot opens a process's root directory and its mount namespace.
func openRoot(process string) (key rootKey, root, mounts *os.File, err error) {
	if root, err = binary.OpenRoot(process + "/root"); err != nil {
		return key, nil, nil, err
	}
	if mounts, err = os.Open(process + "/ns/mnt"); err != nil {
		root.Close()
		return key, nil, nil, err
	}
	var dir, ns unix.Stat_t
	if err := errors.Join(unix.Fstat(int(root.Fd()), &dir), unix.Fstat(int(mounts.Fd()), &ns)); err != nil {
		root.Close()
		mounts.Close()
		return key, nil, nil, err
	}
	return rootKey{uint64(dir.Dev), dir.Ino, ns.Ino}, root, mounts, nil
}

func (rs *roots) Close() error {
	var err error
	for _, f := range rs.byKey {
		err = errors.Join(err, f.Close())
	}
	for _, f := range rs.mounts {
		err = errors.Join(err, f.Close())
	}
	return err
}
