package hold

import "golang.org/x/sys/unix"

// Results of system calls that are not for programs (include/linux/errno.h): the call is begun again when the thread goes on.
const (
	errRestart        unix.Errno = 512 // ERESTARTSYS
	errRestartNoInt   unix.Errno = 513 // ERESTARTNOINTR
	errRestartNoHand  unix.Errno = 514 // ERESTARTNOHAND
	errRestartByBlock unix.Errno = 516 // ERESTART_RESTARTBLOCK
)

// waits reports whether a system call of that number, which returned result to a tracer's stop, was one in which the thread waited,
// as for another thread, for time to pass, or for something to read. Of a thread that the stop found elsewhere the number is
// negative, or the call had ended by itself. A write that waits does not count: a collection that writes to the program's event
// log may wait for who reads that.
func waits(number int64, result uint64) bool {
	if number < 0 || number == unix.SYS_WRITE || number == unix.SYS_WRITEV {
		return false
	}
	switch unix.Errno(-result) {
	case errRestart, errRestartNoInt, errRestartNoHand, errRestartByBlock, unix.EINTR:
		return true
	}
	return false
}
