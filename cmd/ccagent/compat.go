package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"ccagent/agent/invoker"
	"ccagent/profile"
	"ccagent/profile/compat"
	"ccagent/profile/rewrite"
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
// without privileges does it: the log holds what a hostile program said.
func addCompat(ctx context.Context, log *invoker.Log, tools string, patience time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done within %v (--symbolize-time)", patience))
	defer cancel()
	err := log.Replace(func(fresh *os.File) error { return runCompat(ctx, log, fresh, tools) })
	if err != nil {
		return fmt.Errorf("add events for %s: %w; the log is as it was", tools, err)
	}
	return nil
}

// runCompat has the child write the new log, and ends it where it takes too long or the
// user has enough.
func runCompat(ctx context.Context, log *invoker.Log, fresh *os.File, tools string) error {
	uid, gid, err := log.Owner()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{"ccagent-compat"}
	cmd.Env = []string{compatVariable + "=" + tools}
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{log.File, fresh}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		if uid == 0 {
			uid, gid = nobody, nobody
		}
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return errors.New("interrupted")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return errors.Join(err, errors.New(strings.TrimSpace(string(out))))
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
