package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ccagent/internal/testprog"

	"golang.org/x/sys/unix"
)

// attackerID is a uid that no host uses.
const attackerID = 1_234_567

// underSudo makes a command run as root on behalf of a user, as under sudo.
func underSudo(cmd *exec.Cmd, uid int) *exec.Cmd {
	id := strconv.Itoa(uid)
	cmd.Env = append(os.Environ(), "SUDO_UID="+id, "SUDO_GID="+id)
	return cmd
}

// attackersDir returns a folder that belongs to the attacker.
func attackersDir(t *testing.T) string {
	t.Helper()
	dir := sharedDir(t, 0o755)
	if err := os.Chown(dir, attackerID, attackerID); err != nil {
		t.Fatal(err)
	}
	return dir
}

// race is the setting of an attack: a folder of the attacker's in which the link l leads to
// a folder below it, so that l/.. is the folder itself; and a folder that only root may
// write to.
type race struct{ dir, rootsDir string }

func newRace(t *testing.T) race {
	t.Helper()
	r := race{attackersDir(t), sharedDir(t, 0o755)}
	for _, dir := range []string{filepath.Join(r.dir, "below"), filepath.Join(r.rootsDir, "below")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(r.dir, "below"), filepath.Join(r.dir, "l")); err != nil {
		t.Fatal(err)
	}
	return r
}

// swapOnRewrite waits until a log in the attacker's folder is being rewritten and then
// redirects the link to root's folder. It reports whether that was before the new log got
// its name.
func (r race) swapOnRewrite(t *testing.T) func() (inTime bool) {
	t.Helper()
	swapped := filepath.Join(r.dir, "other")
	if err := os.Symlink(filepath.Join(r.rootsDir, "below"), swapped); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, r.dir, unix.IN_CREATE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO); err != nil {
		t.Fatal(err)
	}
	done := make(chan bool, 1)
	go func() {
		begun := false
		b := make([]byte, 4096)
		for !begun {
			n, err := events.Read(b)
			if err != nil {
				done <- false
				return
			}
			begun = bytes.Contains(b[:n], []byte(".ld.so.preload."))
		}
		if err := os.Rename(swapped, filepath.Join(r.dir, "l")); err != nil {
			t.Error(err)
		}
		for { // what comes first, the swap or the log's new name?
			n, err := events.Read(b)
			if err != nil {
				done <- false
				return
			}
			swap, named := bytes.Index(b[:n], []byte("other\x00")), bytes.Index(b[:n], []byte(".ld.so.preload."))
			if swap >= 0 || named >= 0 {
				done <- swap >= 0 && (named < 0 || swap < named)
				return
			}
		}
	}()
	return func() bool {
		defer events.Close()
		events.SetReadDeadline(time.Now().Add(time.Second))
		return <-done
	}
}

// Root rewrites a log only where the user who called sudo may write, even if a link on its
// path changes meanwhile.
func TestRewritingFollowsNoTurnedLink(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.CopyTo(t, testprog.Build(t, "spin31", testprog.Options{}), sharedDir(t, 0o755))
	for _, what := range []string{"record --compat", "symbolize"} {
		t.Run(what, func(t *testing.T) {
			for range 50 { // the attacker may come too late
				r := newRace(t)
				path := r.dir + "/l/../ld.so.preload"
				argv := []string{"record", "-o", path, "--compat", "threadscope", "--", exe, "3000"}
				if what == "symbolize" {
					if r := run(t, underSudo(command(t, ccagent, "record", "-o", path, "--", exe, "3000"), attackerID)); r.status != 0 {
						t.Fatalf("status %d\n%s", r.status, r.stderr)
					}
					argv = []string{"symbolize", path}
				}
				swapped := r.swapOnRewrite(t)
				got := run(t, underSudo(command(t, ccagent, argv...), attackerID))
				inTime := swapped()
				if info, err := os.Lstat(filepath.Join(r.rootsDir, "ld.so.preload")); err == nil {
					t.Fatalf("root wrote %s for uid %d in its own folder", info.Name(), info.Sys().(*syscall.Stat_t).Uid)
				}
				if !inTime {
					continue
				}
				if got.status != 0 {
					t.Errorf("status %d\n%s", got.status, got.stderr)
				}
				entries, err := os.ReadDir(r.dir)
				if err != nil {
					t.Fatal(err)
				}
				var names []string
				for _, e := range entries {
					names = append(names, e.Name())
				}
				if want := "below l ld.so.preload"; strings.Join(names, " ") != want {
					t.Errorf("the attacker's folder has %q, want %q", names, want)
				}
				info, err := os.Lstat(filepath.Join(r.dir, "ld.so.preload"))
				if err != nil {
					t.Fatal(err)
				}
				if st := info.Sys().(*syscall.Stat_t); st.Uid != attackerID || info.Mode().Perm() != 0o600 {
					t.Errorf("the log has owner %d and mode %v", st.Uid, info.Mode())
				}
				readLog(t, filepath.Join(r.dir, "ld.so.preload")).wantWhole(t)
				return
			}
			t.Error("the link was never turned in time")
		})
	}
}

// Files that a user names to symbolize, and files that a user's log names, are opened with
// that user's rights.
func TestSymbolizeReadsAsInvoker(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.CopyTo(t, testprog.Build(t, "spin31", testprog.Options{}), sharedDir(t, 0o755))
	log := filepath.Join(attackersDir(t), "run.eventlog")
	if r := run(t, underSudo(command(t, ccagent, "record", "-o", log, "--", exe, "3000"), attackerID)); r.status != 0 {
		t.Fatalf("status %d\n%s", r.status, r.stderr)
	}
	if err := os.Chmod(exe, 0o711); err != nil {
		t.Fatal(err)
	}
	r := run(t, underSudo(command(t, ccagent, "symbolize", log), attackerID))
	wantLine(t, r.stderr, filepath.Base(exe), "permission denied")
	for _, flags := range [][]string{{"--debug-file", exe}, {"--root", "/proc/1/root"}} {
		r := run(t, underSudo(command(t, ccagent, append(append([]string{"symbolize"}, flags...), log)...), attackerID))
		if r.status != 125 {
			t.Errorf("symbolize %s: status %d, want 125", strings.Join(flags, " "), r.status)
		}
		wantLine(t, r.stderr, flags[1], "permission denied")
	}
	other := filepath.Join(sharedDir(t, 0o755), "roots.eventlog")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantLine(t, run(t, underSudo(command(t, ccagent, "symbolize", other), attackerID)).stderr, fmt.Sprint(other), "permission denied")
}
