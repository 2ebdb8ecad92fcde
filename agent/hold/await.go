package hold

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"ccagent/agent/procfs"
)

// stateChange is a siginfo_t of waitid(2), on 64-bit machines.
type stateChange struct {
	signo, _, code, _ int32
	pid               int32
	_                 [108]byte
}

// ended reports whether a thread has ended, and not stopped.
func (c *stateChange) ended() bool {
	const exited, killed, dumped = 1, 2, 3 // CLD_EXITED, CLD_KILLED, CLD_DUMPED
	return c.code == exited || c.code == killed || c.code == dumped
}

// look reports a change of one of the threads that this OS thread traces, or of one of them, and leaves it to be waited for.
func look(idType, id, options int) (c stateChange, err error) {
	for {
		c = stateChange{}
		err = unix.Waitid(idType, id, (*unix.Siginfo)(unsafe.Pointer(&c)), options|unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT|unix.WALL|unix.WNOTHREAD, nil)
		if !errors.Is(err, unix.EINTR) {
			return c, err
		}
	}
}

// await takes a change that look reports: of any thread, or of one. With WNOHANG, tid is 0 if there is none. The end of a thread
// is taken, for only then the kernel forgets it, and tells the process's parent of its end. But where that parent is this process,
// as of a program that it records, the end is left to who waits for the program's exit status: nobody gets it twice.
func await(idType, id, options int) (tid int, status unix.WaitStatus, err error) {
	for {
		c, err := look(idType, id, options)
		if err != nil || c.signo == 0 {
			return 0, 0, err
		}
		tid := int(c.pid)
		if c.ended() && isChild(tid) {
			return tid, 0, nil
		}
		switch got, err := unix.Wait4(tid, &status, unix.WALL|unix.WNOTHREAD|unix.WNOHANG, nil); {
		case errors.Is(err, unix.EINTR), err == nil && got == 0: // a thread that had stopped has been killed
		default:
			return tid, status, err
		}
	}
}

// isChild reports whether this process is the parent of a process, of which it has the first thread.
func isChild(tid int) bool {
	s, err := procfs.ReadStatus(tid)
	return err == nil && s.TGID == tid && s.Parent == os.Getpid()
}
