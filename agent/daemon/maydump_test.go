package daemon

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/agent/daemon/control"
	"ccagent/internal/testprog"
)

// otherUser is a user other than root.
const otherUser = 65534

// dropVariable is set where the test's program is to drop root's ids; "dumpable" lets the user look into it afterwards.
const dropVariable = "CCAGENT_TEST_DROP"

func TestMain(m *testing.M) {
	if how := os.Getenv(dropVariable); how != "" {
		if err := drop(how); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// drop makes this process another user's in all its ids.
func drop(how string) error {
	for _, err := range []error{syscall.Setgroups(nil), syscall.Setresgid(otherUser, otherUser, otherUser), syscall.Setresuid(otherUser, otherUser, otherUser)} {
		if err != nil {
			return err
		}
	}
	if how == "dumpable" {
		return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	}
	return nil
}

// A user may dump the threads of a process only if the kernel lets that user look into it. A process that root has started stays
// refused when it has changed its user.
func TestMayDump(t *testing.T) {
	testprog.NeedRoot(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dropped := func(how string) *exec.Cmd {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), dropVariable+"="+how)
		return cmd
	}
	// It was never root's.
	own := exec.Command("/bin/sh", "-c", "echo ready; read line")
	own.SysProcAttr, own.Dir = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUser, Gid: otherUser}}, "/"
	rooted := exec.Command("/bin/sh", "-c", "echo ready; read line")
	rooted.Dir = "/"
	for _, c := range []struct {
		name    string
		cmd     *exec.Cmd
		allowed bool
	}{
		{"a user's own", own, true},
		{"root's, which has dropped its ids", dropped("plainly"), false},
		{"root's, which has dropped its ids and permits it", dropped("dumpable"), true},
		{"root's", rooted, false},
	} {
		in, out := testprog.Start(t, c.cmd)
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("%s: it says %q (%v)", c.name, line, err)
		}
		pid := uint32(c.cmd.Process.Pid)
		if err := mayDump(control.Peer{UID: 0}, pid); err != nil {
			t.Errorf("%s: root is refused: %v", c.name, err)
		}
		switch err := mayDump(control.Peer{UID: otherUser}, pid); {
		case c.allowed && err != nil:
			t.Errorf("%s: its user is refused: %v", c.name, err)
		case !c.allowed && (err == nil || !strings.Contains(err.Error(), "rights")):
			t.Errorf("%s: its user gets %v", c.name, err)
		}
		if err := mayDump(control.Peer{UID: 1}, pid); err == nil {
			t.Errorf("%s: another user is not refused", c.name)
		}
		in.Close()
		_ = c.cmd.Wait()
		if err := mayDump(control.Peer{UID: otherUser}, pid); err == nil || !strings.Contains(err.Error(), "ended") {
			t.Errorf("%s: when it has ended: %v", c.name, err)
		}
	}
}
