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
	pid, _, status    int32
	_                 [100]byte
}

// ended reports whether a thread has ended, and not stopped.
func (c *stateChange) ended() bool {
	const exited, killed, dumped = 1, 2, 3 // CLD_EXITED, CLD_KILLED, CLD_DUMPED
	return c.code == exited || c.code == killed || c.code == dumped
}

// change waits for a change of one of the threads that this OS thread traces, or of one of them. The options say which
// changes, and whether it is left to be waited for again.
func change(idType, id, options int) (c stateChange, err error) {
	for {
		c = stateChange{}
		err = unix.Waitid(idType, id, (*unix.Siginfo)(unsafe.Pointer(&c)), options|unix.WALL|unix.WNOTHREAD, nil)
		if !errors.Is(err, unix.EINTR) {
			return c, err
		}
	}
}

// look reports a stop or an end, and leaves it to be waited for.
func look(idType, id, options int) (stateChange, error) {
	return change(idType, id, options|unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT)
}

// StopOf waits for a process to stop which this OS thread traces, and returns how it did. False if it ends instead, also
// right after a stop: its end is left to whoever waits for its exit status.
func StopOf(pid int) (status unix.WaitStatus, ok bool) {
	if c, err := look(unix.P_PID, pid, 0); err != nil || c.ended() {
		return 0, false
	}
	c, err := change(unix.P_PID, pid, unix.WSTOPPED|unix.WNOHANG)
	return unix.WaitStatus(c.status)<<8 | 0x7f, err == nil && c.signo != 0
}

// await takes a change that look reports: of any thread, or of one. With WNOHANG, tid is 0 if there is none.
//
// The kernel forgets a traced thread that has ended, and tells the parent of the process, only when the tracer has waited for it:
// so await does. But if this process itself is the parent, as of a program that it records, await leaves the end of the
// process alone, because its exit status can be read only once, and somebody else waits for it.
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
