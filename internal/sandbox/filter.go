package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// condition restricts the low 32 bits of one argument of a system call; the arguments
// restricted here have no more than that in the kernel.
type condition struct {
	arg int
	// Bits that must be set, and bits that must not be.
	set, clear uint32
	with       []uint32 // allowed values; nil allows all
}

// allowed are the system calls of Go's run-time system (and of glibc's threads in a build
// with cgo) in a running process, and those on descriptors that are already open.
var allowed = []uintptr{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PREADV, unix.SYS_PWRITE64,
	unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_LSEEK, unix.SYS_DUP3, unix.SYS_RECVMSG, unix.SYS_FSYNC, unix.SYS_FDATASYNC,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2,
	unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP,
	unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRANDOM,
	unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_BRK,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
	unix.SYS_GETTID, unix.SYS_GETPID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}

// network are the system calls that a child that Connects has beside those.
var network = []uintptr{
	unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_SETSOCKOPT, unix.SYS_GETSOCKOPT,
	unix.SYS_SENDTO, unix.SYS_RECVFROM, unix.SYS_SENDMSG, unix.SYS_SHUTDOWN,
	unix.SYS_NEWFSTATAT, unix.SYS_GETDENTS64, unix.SYS_READLINKAT, unix.SYS_FTRUNCATE,
}

// networkConditional are those that it has with some arguments: sockets of IP, and files to read.
var networkConditional = map[uintptr][]condition{
	unix.SYS_SOCKET: {{arg: 0, with: []uint32{unix.AF_INET, unix.AF_INET6}}},
	unix.SYS_OPENAT: {{arg: 2, clear: unix.O_WRONLY}, {arg: 2, clear: unix.O_RDWR}, {arg: 2, clear: unix.O_CREAT}, {arg: 2, clear: unix.O_TRUNC}},
}

const prSetVMA = 0x53564d41 // PR_SET_VMA, which names memory

// conditional are system calls that are allowed only with some arguments. All conditions of
// a call must be true.
func conditional() map[uintptr][]condition {
	return map[uintptr][]condition{
		// No executable memory.
		unix.SYS_MMAP:     {{arg: 2, clear: unix.PROT_EXEC}},
		unix.SYS_MPROTECT: {{arg: 2, clear: unix.PROT_EXEC}},
		// Threads, but no processes or namespaces.
		unix.SYS_CLONE: {{arg: 0, set: unix.CLONE_VM}, {arg: 0, set: unix.CLONE_THREAD}},
		// Go preempts its own threads by signals.
		unix.SYS_TGKILL: {{arg: 0, with: []uint32{uint32(os.Getpid())}}},
		// Not F_SETOWN and F_SETSIG, which cause signals to be sent.
		unix.SYS_FCNTL: {{arg: 1, with: []uint32{unix.F_GETFL, unix.F_SETFL, unix.F_GETFD, unix.F_SETFD, unix.F_DUPFD_CLOEXEC}}},
		// Only its own limits, which it can only lower.
		unix.SYS_PRLIMIT64: {{arg: 0, with: []uint32{0}}},
		unix.SYS_PRCTL:     {{arg: 0, with: []uint32{prSetVMA}}},
	}
}

// Offsets in struct seccomp_data.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// program makes the filter. All other system calls fail with EPERM, except for clone3, which
// fails with ENOSYS because a filter cannot see its arguments: glibc then uses clone.
//
// The program is our own because github.com/elastic/go-seccomp-bpf (v1.6.0) compares an
// argument with the number of the next system call if two have conditions.
func program(withNetwork bool) ([]bpf.RawInstruction, error) {
	const (
		allow  = unix.SECCOMP_RET_ALLOW
		refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	)
	arch, ok := auditArch[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("%w on %s", errNoFilter, runtime.GOARCH)
	}
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
	is := func(number uintptr, then uint32) {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(number), SkipTrue: 1}, bpf.RetConstant{Val: then})
	}
	always, sometimes := slices.Concat(allowed, alsoAllowed), conditional()
	if withNetwork {
		always = append(always, network...)
		maps.Copy(sometimes, networkConditional)
	}
	for _, number := range always {
		is(number, allow)
	}
	is(unix.SYS_CLONE3, absent)
	for number, conditions := range sometimes {
		// Each block ends in a return on both paths, so the next block finds the number
		// loaded.
		var block []bpf.Instruction
		for _, c := range conditions {
			block = append(block, c.unless(refuse)...)
		}
		block = append(block, bpf.RetConstant{Val: allow})
		p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(number), SkipTrue: uint8(len(block))})
		p = append(p, block...)
	}
	p = append(p, bpf.RetConstant{Val: refuse})
	raw, err := bpf.Assemble(p)
	if err != nil {
		return nil, fmt.Errorf("assemble the system call filter: %w", err)
	}
	return raw, nil
}

// unless returns instructions that return refuse if the condition is false.
func (c condition) unless(refuse uint32) []bpf.Instruction {
	low := uint32(offArgs + 8*c.arg)
	ret := bpf.RetConstant{Val: refuse}
	p := []bpf.Instruction{bpf.LoadAbsolute{Off: low, Size: 4}}
	if c.set != 0 {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: c.set, SkipTrue: 1}, ret)
	}
	if c.clear != 0 {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: c.clear, SkipFalse: 1}, ret)
	}
	for i, v := range c.with {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(c.with) - i)})
	}
	if c.with != nil {
		p = append(p, ret)
	}
	return p
}

var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

var errNoFilter = errors.New("no system call filter")

// loadFilter installs the filter on all threads of the process. no_new_privs is already set.
func loadFilter(withNetwork bool) error {
	raw, err := program(withNetwork)
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	switch {
	case errno == unix.ENOSYS || errno == unix.EINVAL:
		return fmt.Errorf("%w in this kernel (CONFIG_SECCOMP_FILTER)", errNoFilter)
	case errno != 0:
		return fmt.Errorf("load the system call filter: %w", errno)
	case thread != 0:
		return fmt.Errorf("load the system call filter: thread %d has another", thread)
	}
	return nil
}
