package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"ccagent/profile"
	"ccagent/profile/compat"
	"ccagent/profile/rewrite"

	"golang.org/x/sys/unix"
)

// compatVariable makes a process the child that derives events for the tools
// that it names. The log is its file 3, the new one its file 4.
const compatVariable = "CCAGENT_COMPAT"

// nobody is who reads a log that is root's.
const nobody = 65534

// compatMain does not return in such a child.
func compatMain() {
	tools := os.Getenv(compatVariable)
	if tools == "" {
		return
	}
	if err := deriveInto(os.NewFile(4, "new log"), os.NewFile(3, "log"), tools); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// checkCompat tells before a capture what would fail after it.
func checkCompat(tools string) error {
	for name := range strings.SplitSeq(tools, ",") {
		known := false
		for _, n := range compat.Names() {
			known = known || n == strings.TrimSpace(name)
		}
		if !known && tools != "" {
			return fmt.Errorf("--compat %q: choose %s", name, strings.Join(compat.Names(), ", "))
		}
	}
	return nil
}

// addCompat adds to a log what other tools look for. Names are known only now,
// at the end of the capture, and none of the work falls on the program. A child
// without privileges does it: the log holds what a hostile program said. It gives
// by how much the log has grown.
func addCompat(path, tools string) (grown int64, err error) {
	old, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return 0, fmt.Errorf("add events for %s: %w", tools, err)
	}
	defer old.Close()
	var owner unix.Stat_t
	if err := unix.Fstat(int(old.Fd()), &owner); err != nil {
		return 0, fmt.Errorf("add events for %s: %w", tools, err)
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return 0, fmt.Errorf("add events for %s: %w", tools, err)
	}
	defer func() {
		if err = errors.Join(err, fresh.Close()); err != nil {
			os.Remove(fresh.Name())
			err = fmt.Errorf("add events for %s: %w; the log is as it was", tools, err)
		}
	}()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"ccagent-compat"}
	cmd.Env = []string{compatVariable + "=" + tools}
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{old, fresh}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		uid, gid := owner.Uid, owner.Gid
		if err := fresh.Chown(int(uid), int(gid)); err != nil {
			return 0, err
		}
		if uid == 0 {
			uid, gid = nobody, nobody
		}
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, errors.Join(err, errors.New(strings.TrimSpace(string(out))))
	}
	if err := fresh.Sync(); err != nil {
		return 0, err
	}
	size, err := fresh.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	return size - owner.Size, os.Rename(fresh.Name(), path)
}

func deriveInto(fresh io.Writer, old *os.File, tools string) error {
	st, err := old.Stat()
	if err != nil {
		return err
	}
	read := func() io.Reader { return io.NewSectionReader(old, 0, st.Size()) }
	p, err := profile.Load(read())
	if err != nil {
		return err
	}
	var ss []*profile.Selection
	for i := range p.Events {
		if p.Events[i].Samples > 0 {
			ss = append(ss, p.Select(profile.Filter{}.WithEvent(i)))
		}
	}
	if len(ss) == 0 {
		return errors.New("the log has no samples")
	}
	add, err := compat.Events(tools, ss)
	if err != nil {
		return err
	}
	in := rewrite.Input{Name: "the log", Open: func() (io.ReadCloser, error) { return io.NopCloser(read()), nil }}
	_, err = rewrite.Write(fresh, []rewrite.Input{in}, rewrite.Options{Add: add})
	return err
}
