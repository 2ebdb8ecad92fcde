package sandbox

import "golang.org/x/sys/unix"

// alsoAllowed are system calls that other architectures have no number for.
var alsoAllowed = []uintptr{unix.SYS_EPOLL_WAIT, unix.SYS_DUP2, unix.SYS_TIME}
