package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// serveAt serves a socket until the test's end.
func serveAt(t *testing.T, handle Handler) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "control.sock")
	l, err := Listen(socket, -1)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- Serve(t.Context(), l, handle) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return socket
}

// An answer has who asked, as the kernel says, and its files in order, also when there are more
// than one message takes.
func TestAnswersWithFiles(t *testing.T) {
	const n = filesPerMessage + 20
	dir := t.TempDir()
	socket := serveAt(t, func(_ context.Context, p Peer, r Request) (a Answer, files []*os.File) {
		if p.UID != uint32(os.Getuid()) || p.PID != int32(os.Getpid()) || r.Service != "api" {
			a.Error = fmt.Sprintf("%+v asks for %+v", p, r)
			return a, nil
		}
		for i := range n {
			name := fmt.Sprint(i)
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
				a.Error = err.Error()
			}
			f, err := os.Open(path)
			if err != nil {
				a.Error = err.Error()
				return a, files
			}
			a.Pieces, files = append(a.Pieces, name), append(files, f)
		}
		return a, files
	})
	a, files, err := Ask(socket, Request{Command: CommandSnapshot, Service: "api"})
	if err != nil || len(files) != n {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for i, f := range files {
		text := make([]byte, 8)
		m, _ := f.Read(text)
		f.Close()
		if got := string(text[:m]); got != a.Pieces[i] {
			t.Errorf("file %d is %q, want %q", i, got, a.Pieces[i])
		}
	}
}

// What is no request is refused with a reason, and so is another version's.
func TestRefusals(t *testing.T) {
	socket := serveAt(t, func(context.Context, Peer, Request) (Answer, []*os.File) { return Answer{}, nil })
	for line, want := range map[string]string{"{}\n": "version 0", "ps\n": "invalid", `{"version":99,"command":"ps"}` + "\n": "version 99"} {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, line)
		var answer bytes.Buffer
		_, _ = answer.ReadFrom(c)
		c.Close()
		if !strings.Contains(answer.String(), want) {
			t.Errorf("%q is answered by %q, want %q", line, answer.String(), want)
		}
	}
}

// What is done for a peer is over when the peer hangs up, and goes on where it has just no more to ask.
func TestHangingUp(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error)
	goOn := make(chan struct{})
	socket := serveAt(t, func(ctx context.Context, _ Peer, r Request) (Answer, []*os.File) {
		began <- struct{}{}
		select {
		case <-ctx.Done():
			ended <- context.Cause(ctx)
		case <-goOn:
		}
		return Answer{Notes: []string{r.Service}}, nil
	})
	ask := func() *net.UnixConn {
		t.Helper()
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, `{"version":1,"command":"threads","service":"api"}`+"\n")
		<-began
		return c
	}
	ask().Close()
	if err := <-ended; !errors.Is(err, errGone) {
		t.Errorf("the context ended since %v", err)
	}
	c := ask()
	defer c.Close()
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	select {
	case goOn <- struct{}{}:
	case err := <-ended:
		t.Fatalf("a peer that waits is given up: %v", err)
	}
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(c); err != nil || !strings.Contains(answer.String(), "api") {
		t.Errorf("the answer is %q (%v)", answer.String(), err)
	}
}

// A user sees their own processes, and root all.
func TestPeerSees(t *testing.T) {
	if p := (Peer{UID: 1000}); !p.Sees(1000) || p.Sees(1001) || p.Sees(0) {
		t.Error("a user sees others' processes, or not their own")
	}
	if p := (Peer{UID: 0}); !p.Sees(1000) {
		t.Error("root does not see all")
	}
	sudo := uint32(1000)
	if p := (Peer{UID: 0}).For(Request{AsUID: &sudo}); !p.Sees(1000) || p.Sees(0) {
		t.Error("who calls by sudo sees others' processes, or not their own")
	}
	if p := (Peer{UID: 1001}).For(Request{AsUID: &sudo}); p.Sees(1000) {
		t.Error("a user asks as another")
	}
}

// A socket that is served is not taken away.
func TestOneDaemonASocket(t *testing.T) {
	socket := serveAt(t, func(context.Context, Peer, Request) (Answer, []*os.File) { return Answer{}, nil })
	if _, err := Listen(socket, -1); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second daemon gets %v", err)
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add([]byte(`{"version":1,"command":"snapshot","pid":7,"last_seconds":300}` + "\n"))
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"version":1`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if r, err := ReadRequest(bytes.NewReader(text)); err == nil && r.Version != Version {
			t.Errorf("version %d was accepted", r.Version)
		}
	})
}
