package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"ccagent/internal/capset"

	"golang.org/x/sys/unix"
)

// Role is the work of a child on the files that it is given. If it returns an error, the
// child prints that on its standard error and ends.
type Role func(c *Conn, files []*os.File) error

// Main runs a role and ends the process, if this process is a child. A program that calls
// Start must call Main first in its main function.
func Main(roles map[string]Role) {
	role, ok := roles[os.Getenv(childVariable)]
	if !ok {
		return
	}
	if err := child(role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(role Role) error {
	dieFirst()
	if err := undumpable(); err != nil {
		return err
	}
	c, err := newConn(os.NewFile(fdSocket, "socket"))
	if err != nil {
		return err
	}
	_, b, err := c.Receive(maxSetup)
	if err != nil {
		return err
	}
	var s setup
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("read the setup: %w", err)
	}
	mapped := addressSpace() // not readable later
	confined, err := enter(s)
	if err != nil {
		return errors.Join(err, c.Send(saidFailed, []byte(err.Error())))
	}
	if b, err = json.Marshal(confined); err != nil {
		return err
	}
	if err := c.Send(saidReady, b); err != nil {
		return err
	}
	files, err := c.ReceiveFiles(s.Files)
	if err != nil {
		return err
	}
	if err := unix.Dup3(int(files[0].Fd()), 2, 0); err != nil {
		return fmt.Errorf("take standard error: %w", err)
	}
	files[0].Close()
	// The limit is set last, so that an error can still be reported if it is too small.
	if err := limitMemory(s.Memory, mapped); err != nil {
		return err
	}
	if s.Frugal && (s.Memory == 0 || s.Memory > FrugalHeap) {
		debug.SetMemoryLimit(FrugalHeap)
	}
	return role(c, files[1:])
}

// undumpable prevents processes with the same uid from tracing this one and from accessing
// its memory or descriptors.
func undumpable() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("make the process not dumpable: %w", err)
	}
	return nil
}

// enter drops the privileges that the child does not need, and sets its limits.
func enter(s setup) (Confinement, error) {
	var done Confinement
	closeInherited()
	if s.UID != 0 {
		if err := changeID(int(s.UID)); err != nil {
			return done, err
		}
	}
	done.UID = uint32(os.Geteuid())
	if err := undumpable(); err != nil { // a change of ids may have undone it
		return done, err
	}
	if sets, err := capset.Get(); err != nil {
		return done, err
	} else if sets != (capset.Sets{}) {
		return done, fmt.Errorf("the process has kept capabilities: %x", sets)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return done, fmt.Errorf("set no_new_privs: %w", err)
	}
	limits := map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_MEMLOCK: 0, unix.RLIMIT_FSIZE: s.FileSize} // pipes and sockets are not files
	if s.CPU > 0 {
		limits[unix.RLIMIT_CPU] = s.CPU
	}
	for what, most := range limits {
		if err := limit(what, most); err != nil {
			return done, err
		}
	}
	switch err := loadFilter(s.Connects); {
	case errors.Is(err, errNoFilter):
		done.Filter = err.Error()
	case err != nil:
		return done, err
	}
	return done, nil
}

// changeID changes to another user id, which also drops the last capabilities.
func changeID(id int) error {
	if err := unix.Setgroups(nil); err != nil {
		return fmt.Errorf("leave the groups: %w", err)
	}
	if err := unix.Setresgid(id, id, id); err != nil {
		return fmt.Errorf("change the gid to %d: %w", id, err)
	}
	if err := unix.Setresuid(id, id, id); err != nil {
		return fmt.Errorf("change the uid to %d: %w", id, err)
	}
	// The change of ids has cleared the signal for the parent's death.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("set the signal of the parent's death: %w", err)
	}
	return nil
}

// closeInherited closes inherited descriptors other than the socket, if the parent could
// not: those that are neither close-on-exec nor standard streams.
func closeInherited() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		// All that Go opens is close-on-exec.
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
}

func limit(what int, most uint64) error {
	if err := unix.Prlimit(0, what, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil {
		return fmt.Errorf("limit resource %d: %w", what, err)
	}
	return nil
}

// limitMemory limits the process's memory; 0 is no limit.
func limitMemory(bytes, mapped uint64) error {
	if bytes == 0 {
		return nil
	}
	debug.SetMemoryLimit(int64(bytes))
	// The runtime has reserved address space that it never uses, and reserves more by an arena at a time.
	const arena = 64 << 20
	return limit(unix.RLIMIT_AS, mapped+2*bytes+arena)
}

// addressSpace returns the size of the process's mappings in bytes.
func addressSpace() uint64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 2 << 30
	}
	pages, err := strconv.ParseUint(strings.Fields(string(b) + " 0")[0], 10, 64)
	if err != nil {
		return 2 << 30
	}
	return pages * uint64(os.Getpagesize())
}
