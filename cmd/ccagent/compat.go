package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"ccagent/agent/invoker"
	"ccagent/internal/sandbox"
	"ccagent/profile"
	"ccagent/profile/compat"
	"ccagent/profile/rewrite"
)

// compatRole is the role of the child that derives events for the tools named in its first
// message. The log is its first file, the new log its second.
const compatRole = "compat"

// compatMain runs such a child, and then does not return.
func compatMain() {
	sandbox.Main(map[string]sandbox.Role{compatRole: func(c *sandbox.Conn, files []*os.File) error {
		_, tools, err := c.Receive(maxTools)
		if err != nil {
			return err
		}
		return deriveInto(files[1], files[0], string(tools))
	}})
}

const (
	maxTools = 1 << 12 // bytes of the tools' names
	// maxDerived limits the bytes added to a log.
	maxDerived = 1 << 30
)

// checkCompat reports, before a capture, names of tools that are not known.
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

// addCompat adds the events that other tools need to a log, at the end of the capture, when
// names are known and the program is not disturbed. A child without privileges does the
// work, because the log contains data from a possibly hostile program.
func addCompat(ctx context.Context, log *invoker.Log, tools string, patience time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done within %v (--symbolize-time)", patience))
	defer cancel()
	err := log.Replace(func(fresh *os.File) error { return runCompat(ctx, log, fresh, tools) })
	if err != nil {
		return fmt.Errorf("add events for %s: %w; the log is as it was", tools, err)
	}
	return nil
}

// runCompat lets the child write the new log, and stops it if it takes too long or the user
// interrupts.
func runCompat(ctx context.Context, log *invoker.Log, fresh *os.File, tools string) error {
	info, err := log.File.Stat()
	if err != nil {
		return err
	}
	// The child gets the log read-only.
	old, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", log.File.Fd()))
	if err != nil {
		return err
	}
	defer old.Close()
	c, err := sandbox.Start(ctx, sandbox.Config{Role: compatRole, Name: "ccagent-compat", FileSize: uint64(info.Size()) + maxDerived}, old, fresh)
	var words string
	if err == nil {
		if err = errors.Join(c.Send(0, []byte(tools)), c.Wait()); err == nil {
			return nil
		}
		words = strings.TrimSpace(string(c.Stderr()))
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return errors.New("interrupted")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if words != "" {
		err = errors.Join(err, errors.New(words))
	}
	return err
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
