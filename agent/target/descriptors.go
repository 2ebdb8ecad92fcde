package target

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// inherited are the descriptors, besides the standard streams, that this process was
// started with to pass on.
var inherited []int

// WithholdDescriptors keeps the descriptors that this process was started with from the
// processes that it starts. A started program gets them only where it runs as the user
// that the agent itself runs as, as it would without the agent in between: a shell's
// 3>file, or make's job server. To another user's program they would be a way into files
// of the agent's caller. It is to be called before the process opens any file.
func WithholdDescriptors() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err == nil {
		for _, e := range entries {
			fd, err := strconv.Atoi(e.Name())
			if err != nil || fd <= 2 {
				continue
			}
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
				inherited = append(inherited, fd)
			}
		}
	}
	// For descriptors that are not listed, if /proc is not mounted.
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
}

// passOn has the next program that is started inherit the descriptors, or not.
func passOn(yes bool) {
	flag := unix.FD_CLOEXEC
	if yes {
		flag = 0
	}
	for _, fd := range inherited {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, flag)
	}
}
