package worker

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// What a child is to do: the value of childVariable.
const (
	roleSymbolise = "1"
	roleUnwind    = "unwind"
)

// command is a child with the rights of the log's owner, or nobody's where that
// is root.
func command(ctx context.Context, role string, uid, gid uint32) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{"ccagent-symbolize"}
	cmd.Env = []string{childVariable + "=" + role, "GOTRACEBACK=single"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		if uid == 0 {
			uid, gid = nobody, nobody
		}
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
	return cmd
}

// start starts a child that cannot regain privileges. The channel gives what
// Wait says, once.
func start(cmd *exec.Cmd) (<-chan error, error) {
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		// no_new_privs is the thread's and is inherited: set before the child
		// starts, it also holds back the executable's own file capabilities. The
		// thread is not given back; and since the child dies with the thread that
		// made it (Pdeathsig), this one waits for it.
		runtime.LockOSThread()
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			started <- fmt.Errorf("set no_new_privs: %w", err)
			return
		}
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		ended <- cmd.Wait()
	}()
	return ended, <-started
}
