package images

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"ccagent/symbolize"
)

// maxRoots bounds the root directories that are held open.
const maxRoots = 64

// roots are the root directories of profiled processes in a chroot or a container, each
// held open once, so that their files can be found when the processes have ended.
type roots struct {
	byKey map[rootKey]*os.File
}

// rootKey identifies a root directory: what is below it depends on the mounts as well.
type rootKey struct {
	dev, inode uint64
	mounts     string
}

// of gives a process's root directory, nil where it is the agent's own, or not known.
func (rs *roots) of(pid uint32) *os.File {
	key, f, err := openRoot(fmt.Sprintf("/proc/%d", pid))
	if err != nil {
		return nil
	}
	own, mine, err := openRoot("/proc/self")
	if err == nil {
		mine.Close()
	}
	have, known := rs.byKey[key]
	if err != nil || key == own || known || len(rs.byKey) >= maxRoots {
		f.Close()
		return have
	}
	if rs.byKey == nil {
		rs.byKey = make(map[rootKey]*os.File)
	}
	rs.byKey[key] = f
	return f
}

func openRoot(process string) (rootKey, *os.File, error) {
	f, err := symbolize.OpenRoot(process + "/root")
	if err != nil {
		return rootKey{}, nil, err
	}
	mounts, err := os.Readlink(process + "/ns/mnt")
	var st unix.Stat_t
	if err := errors.Join(err, unix.Fstat(int(f.Fd()), &st)); err != nil {
		f.Close()
		return rootKey{}, nil, err
	}
	return rootKey{uint64(st.Dev), st.Ino, mounts}, f, nil
}

func (rs *roots) Close() error {
	var err error
	for _, f := range rs.byKey {
		err = errors.Join(err, f.Close())
	}
	return err
}
