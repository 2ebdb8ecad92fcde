package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"ccagent/internal/testprog"

	"golang.org/x/sys/unix"
)

// sudoAsNobody prepares `sudo ccagent …` as called by the user nobody: it runs the real
// sudo, with a sudoers file that permits everything and that only this command sees.
func sudoAsNobody(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	testprog.NeedRoot(t)
	sudo := testprog.NeedTool(t, "sudo", "")
	setpriv := testprog.NeedTool(t, "setpriv", "util-linux")
	unshare := testprog.NeedTool(t, "unshare", "util-linux")
	if out, err := exec.Command(unshare, "--mount", "--propagation", "private", "true").CombinedOutput(); err != nil {
		testprog.Skip(t, &testprog.UnsupportedError{
			Need: "a private mount namespace: " + strings.TrimSpace(string(out)),
			Hint: "in a chroot, / must be a mount point"})
	}
	sudoers := filepath.Join(sharedDir(t, 0o755), "sudoers")
	rule := "Defaults secure_path=\"/usr/bin:/bin\"\n#65534 ALL=(ALL:ALL) NOPASSWD: ALL\n"
	if err := os.WriteFile(sudoers, []byte(rule), 0o440); err != nil {
		t.Fatal(err)
	}
	// In its own mount namespace /etc/sudoers is ours.
	script := `mount --bind "$1" /etc/sudoers && shift && exec "$@"`
	argv := []string{"--mount", "--propagation", "private", "sh", "-c", script, "sh", sudoers,
		setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups", sudo, "-n", ccagent}
	cmd := command(t, unshare, append(argv, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "MARK=nobody's", "HOME=/nonexistent", "USER=nobody")
	return cmd
}

// Under sudo the program runs as the user who called it, and the log belongs to that user.
func TestSudoRunsAsInvoker(t *testing.T) {
	dir := sharedDir(t, 0o777)
	r := run(t, sudoAsNobody(t, dir, "record", "-o", "run.eventlog", "--",
		"sh", "-c", `id -u; id -g; id -G; pwd -P; echo "$MARK"; echo "$HOME"; echo "${SUDO_UID-none}"; grep CapEff /proc/self/status`))
	if r.status != 0 {
		t.Fatalf("status %d\n%s", r.status, r.stderr)
	}
	want := []string{"65534", "65534", "65534", dir, "nobody's", "/nonexistent", "none", "CapEff:\t0000000000000000"}
	if got := strings.Split(strings.TrimSpace(r.stdout), "\n"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the program sees %q, want %q", got, want)
	}
	info, err := os.Stat(filepath.Join(dir, "run.eventlog"))
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != nobodyID || st.Gid != nobodyID || info.Mode().Perm() != 0o600 {
		t.Errorf("the log belongs to %d:%d with mode %v, want 65534:65534 and 0600", st.Uid, st.Gid, info.Mode().Perm())
	}
}

// Permission to run ccagent by sudo does not permit writing where the user may not write.
func TestSudoWritesAsInvoker(t *testing.T) {
	dir := sharedDir(t, 0o755)
	rootsOwn := filepath.Join(dir, "run.eventlog")
	link := filepath.Join(sharedDir(t, 0o777), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{rootsOwn, filepath.Join(link, "run.eventlog")} {
		r := run(t, sudoAsNobody(t, "/tmp", "record", "-o", path, "--", "true"))
		if r.status != 125 {
			t.Errorf("-o %s: status %d, want 125\n%s", path, r.status, r.stderr)
		}
		wantLine(t, r.stderr, "permission denied")
		if _, err := os.Stat(rootsOwn); err == nil {
			t.Errorf("-o %s: root wrote for the user", path)
		}
	}
}

// A user may attach to own processes, not to others'.
func TestSudoAttachesToOwnProcesses(t *testing.T) {
	shared := sharedDir(t, 0o777)
	exe := testprog.CopyTo(t, testprog.Build(t, "spin31", testprog.Options{}), sharedDir(t, 0o755))
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("own=%v", own), func(t *testing.T) {
			target := command(t, exe, endless)
			target.Dir = shared
			if own {
				target.SysProcAttr = nobody()
			}
			begin(t, target)
			r := run(t, sudoAsNobody(t, shared, "attach", "--duration", "1s", "-o", "own.eventlog", pidOf(target)))
			if own && r.status != 0 {
				t.Errorf("status %d\n%s", r.status, r.stderr)
			}
			if !own {
				if r.status != 125 {
					t.Errorf("status %d, want 125", r.status)
				}
				wantLine(t, r.stderr, "another user")
			}
		})
	}
}

// doctor looks at programs and processes with the invoker's rights: it does not say whether
// another user's private file is there, or what compiled it.
func TestSudoDoctorReadsAsInvoker(t *testing.T) {
	shared := sharedDir(t, 0o777)
	private := sharedDir(t, 0o700)
	exe := testprog.CopyTo(t, testprog.Build(t, "spin31", testprog.Options{}), private)
	const denied = "permission denied"
	for _, path := range []string{exe, filepath.Join(private, "nothing")} {
		r := run(t, sudoAsNobody(t, shared, "doctor", path))
		if r.status == 0 || !strings.Contains(r.stderr, denied) || strings.Contains(r.stdout+r.stderr, "no such file") {
			t.Errorf("doctor %s: status %d\n%s%s", path, r.status, r.stdout, r.stderr)
		}
	}
	target := command(t, exe, endless)
	begin(t, target)
	if r := run(t, sudoAsNobody(t, shared, "doctor", pidOf(target))); r.status == 0 || strings.Contains(r.stdout, "GHC 9") {
		t.Errorf("doctor of another user's process: status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
}

// A program whose file only its user may read is profiled with names: symbols are read as
// that user, without the privileges of the capture.
func TestSudoKeepsNames(t *testing.T) {
	dir := sharedDir(t, 0o777)
	private := filepath.Join(dir, "private")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	exe := testprog.CopyTo(t, testprog.Build(t, "spin31", testprog.Options{}), private)
	for _, p := range []string{private, exe} {
		if err := os.Chown(p, nobodyID, nobodyID); err != nil {
			t.Fatal(err)
		}
	}
	r := run(t, sudoAsNobody(t, dir, "record", "-o", "run.eventlog", "--", exe, "10000"))
	if r.status != 0 {
		t.Fatalf("status %d\n%s", r.status, r.stderr)
	}
	hotOf(t, filepath.Join(dir, "run.eventlog")).element(t, "Main.three")
}

// A capture leaves no signal handler, process or file of the agent behind, whether the
// program or the agent ends first.
func TestNothingIsLeftBehind(t *testing.T) {
	testprog.NeedRoot(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	dir := t.TempDir()
	cmd := command(t, ccagent, "record", "-o", "run.eventlog", "--", "sh", "-c", "exit 0")
	cmd.Dir = dir
	if r := run(t, cmd); r.status != 0 {
		t.Fatalf("status %d\n%s", r.status, r.stderr)
	}
	// A process that the agent started and did not wait for is now our child.
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("a process is left: %d (%v)", pid, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != "run.eventlog" {
		t.Errorf("left in the working directory: %v", entries)
	}
}

// hostOf prepares a command in a mount namespace whose /etc has these users and this
// configuration of ccagent.
func hostOf(t *testing.T, config string, users map[string]int, name string, args ...string) *exec.Cmd {
	t.Helper()
	testprog.NeedRoot(t)
	etc := sharedDir(t, 0o755)
	passwd, group := "root:x:0:0::/:/bin/sh\n", "root:x:0:\n"
	for user, id := range users {
		passwd += fmt.Sprintf("%s:x:%d:%d::/:/bin/sh\n", user, id, id)
		group += fmt.Sprintf("%s:x:%d:\n", user, id)
	}
	if err := os.Mkdir(filepath.Join(etc, "ccagent"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{"passwd": passwd, "group": group, "ccagent/ccagent.yaml": config} {
		if err := os.WriteFile(filepath.Join(etc, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	script := `mount --bind "$1" /etc && shift && exec "$@"`
	return command(t, testprog.NeedTool(t, "unshare", "util-linux"),
		append([]string{"--mount", "--propagation", "private", "sh", "-c", script, "sh", etc, name}, args...)...)
}

// Permission to run ccagent by sudo does not permit becoming another user, least of all
// root, unless root's configuration does.
func TestSudoUserIsInvokerOrAllowed(t *testing.T) {
	users := map[string]int{"alice": attackerID, "svc-api": attackerID + 1, "svc-db": attackerID + 2}
	const allow = "allow: {alice: [svc-api]}\n"
	for _, c := range []struct {
		name, config, user string
		sudo               int // SUDO_UID; -1 is none
		uid                string
		says               []string
	}{
		{"herself", "", "alice", attackerID, "1234567", nil},
		{"root", allow, "root", attackerID, "", []string{"--user root", "by sudo, alice may act as alice", "/etc/ccagent/ccagent.yaml", "root itself"}},
		{"allowed", allow, "svc-api", attackerID, "1234568", nil},
		{"another", allow, "svc-db", attackerID, "", []string{"--user svc-db", "allow: {alice: ["}},
		{"someone else's leave", "allow: {bob: [svc-api]}\n", "svc-api", attackerID, "", []string{"--user svc-api"}},
		{"a mistake in the file", "allow:\n  alice: [svc-api]\nalow: {}\n", "svc-api", attackerID, "", []string{"ccagent.yaml", "line 3", "alow"}},
		{"root by sudo", "", "svc-db", 0, "1234569", nil},
		{"root", "", "svc-db", -1, "1234569", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := hostOf(t, c.config, users, ccagent, "record", "--user", c.user, "-o", filepath.Join(sharedDir(t, 0o777), "log"), "--", "/usr/bin/id", "-u")
			if c.sudo >= 0 {
				underSudo(cmd, c.sudo)
			}
			r := run(t, cmd)
			if got := strings.TrimSpace(r.stdout); got != c.uid {
				t.Errorf("the program ran as %q, want %q", got, c.uid)
			}
			if c.uid == "" {
				if r.status != 125 {
					t.Errorf("status %d, want 125", r.status)
				}
				wantLine(t, r.stderr, c.says...)
			} else if r.status != 0 {
				t.Errorf("status %d\n%s", r.status, r.stderr)
			}
		})
	}
}
