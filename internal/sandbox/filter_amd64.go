package sandbox

import "golang.org/x/sys/unix"

// alsoAllowed are system calls that exist only on some architectures.
var alsoAllowed = []uintptr{unix.SYS_EPOLL_WAIT, unix.SYS_DUP2, unix.SYS_TIME}
