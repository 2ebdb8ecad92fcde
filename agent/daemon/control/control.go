// Package control is the protocol of the daemon's control socket: a request and an answer, each a
// line of JSON, a connection. Open files may come with an answer. The kernel says who asks, and a
// user other than root is shown and given what is of their own processes alone.
package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Version is of the protocol. A daemon refuses requests of other versions.
const Version = 1

// Path is where the socket is by default.
const Path = "/run/ccagent/control.sock"

// Commands.
const (
	CommandPS       = "ps"
	CommandStatus   = "status"
	CommandReload   = "reload"
	CommandSnapshot = "snapshot"
	CommandBoost    = "boost"
	CommandThreads  = "threads"
	CommandHeap     = "heap"
)

// Request is what is asked for.
type Request struct {
	Version int    `json:"version"`
	Command string `json:"command"`
	// PID or Service are of a snapshot, of threads and of a heap, Last of a snapshot.
	PID     uint32  `json:"pid,omitempty"`
	Service string  `json:"service,omitempty"`
	Last    float64 `json:"last_seconds,omitempty"`
	// PID, Rate, Hz, and For are of a boost; it is ended where For is 0.
	Rate uint64  `json:"rate,omitempty"`
	For  float64 `json:"for_seconds,omitempty"`
	// MaxPause and Wait are of a heap: for how long the process may be stopped (0 is no bound, nil as it is by default), and for how long to
	// wait for a major collection.
	MaxPause *float64 `json:"max_pause_seconds,omitempty"`
	Wait     float64  `json:"wait_seconds,omitempty"`
	// NoSource, NoArgs and NoLabels leave out of a log of threads or of a heap what may be private: the text of source files,
	// the program's arguments, and what it calls its threads.
	NoSource bool `json:"no_source,omitempty"`
	NoArgs   bool `json:"no_args,omitempty"`
	NoLabels bool `json:"no_labels,omitempty"`
	// AsUID is set by a client of root that asks for another user, who has called it by sudo: it
	// sees what that user sees.
	AsUID *uint32 `json:"as_uid,omitempty"`
}

// Answer is the daemon's.
type Answer struct {
	Version   int       `json:"version"`
	Error     string    `json:"error,omitempty"`
	Processes []Process `json:"processes,omitempty"`
	Status    *Status   `json:"status,omitempty"`
	// Pieces are the names of the files that come with the answer, in their order.
	Pieces []string `json:"pieces,omitempty"`
	// Notes are what is to be known of a log of threads or of a heap.
	Notes []string `json:"notes,omitempty"`
	// SinceUnixNs is when a snapshot's stretch of time begins.
	SinceUnixNs int64 `json:"since_unix_ns,omitempty"`
}

// Process is a Haskell process of the host.
type Process struct {
	PID       uint32    `json:"pid"`
	Service   string    `json:"service"`
	Program   string    `json:"program"`
	GHC       string    `json:"ghc"`
	Way       string    `json:"way"`
	Cgroup    string    `json:"cgroup"`
	Container string    `json:"container"`
	State     string    `json:"state"` // sampled, excluded, failed, or visible where no daemon runs
	Events    []string  `json:"events"`
	Missing   []Missing `json:"missing"`
	// Partly is what of Events is left out, and why.
	Partly  []Missing `json:"partly,omitempty"`
	Samples uint64    `json:"samples"`
	// Cost is what sampling takes of the process's CPU time, as a part of it, since it is sampled; nil where
	// it is not, and as long as it has not run.
	Cost  *float64 `json:"cost"`
	UID   uint32   `json:"uid"`
	Boost *Boost   `json:"boost,omitempty"`
}

// Boost is that a process is sampled more often for a while.
type Boost struct {
	Rate  uint64  `json:"rate"`  // Hz, beside that of all processes
	Asked uint64  `json:"asked"` // Hz
	Left  float64 `json:"left_seconds"`
	UID   uint32  `json:"uid"` // who asked for it
}

// Missing is an event that is not sampled, or only in part, and why.
type Missing struct {
	Event  string `json:"event"`
	Reason string `json:"reason"`
}

// Status is the daemon's own.
type Status struct {
	Version   string  `json:"version"`
	PID       int     `json:"pid"`
	UpSeconds float64 `json:"up_seconds"`
	Processes int     `json:"processes"`
	Samples   uint64  `json:"samples"`
	Lost      uint64  `json:"lost"`
	Pieces    int     `json:"pieces"`
	Bytes     int64   `json:"bytes"`
	Failed    uint64  `json:"failed"` // pieces that could not be finished
	// Stalled is how many logs cannot be written now, for Problem, and Unwritten how many of their events
	// were dropped.
	Stalled   int      `json:"stalled"`
	Problem   string   `json:"problem,omitempty"`
	Unwritten uint64   `json:"unwritten"`
	CPUSecs   float64  `json:"cpu_seconds"`
	RSS       uint64   `json:"rss_bytes"` // peak
	Events    []string `json:"events"`
	Engines   []Engine `json:"engines"` // that pieces are sent to
}

// Engine is how sending to an engine goes, in pieces since the daemon began.
type Engine struct {
	Name     string            `json:"name"`
	Sent     uint64            `json:"sent"`
	Bytes    uint64            `json:"bytes"` // before compression
	Rejected uint64            `json:"rejected"`
	Dropped  map[string]uint64 `json:"dropped"` // by reason
	Waiting  int               `json:"waiting"`
	Failing  string            `json:"failing,omitempty"` // why the last attempt failed
}

// A Peer is the process at the other end of a connection, with its user.
type Peer struct {
	PID int32
	UID uint32
}

// For returns the peer as whom a request is answered: root may ask as another user
// (Request.AsUID).
func (p Peer) For(r Request) Peer {
	if p.UID == 0 && r.AsUID != nil {
		p.UID = *r.AsUID
	}
	return p
}

// Sees reports whether the peer may know of a user's processes.
func (p Peer) Sees(uid uint32) bool { return p.UID == 0 || p.UID == uid }

// Handler answers a request. The context ends when the peer hangs up. The files are closed when the answer was sent.
type Handler func(ctx context.Context, peer Peer, r Request) (Answer, []*os.File)

// errGone is why a context ends when nobody waits for the answer.
var errGone = errors.New("who has asked has hung up")

const (
	// maxRequest and maxAnswer bound a line, in bytes.
	maxRequest = 1 << 16
	maxAnswer  = 16 << 20
	// patience is how long a peer may take to ask, and to take the answer.
	patience = 10 * time.Second
	// filesPerMessage is the kernel's limit (SCM_MAX_FD).
	filesPerMessage = 253
	// MaxFiles bounds the files of an answer.
	MaxFiles = 4096
)

// ReadRequest reads a request; its line must end.
func ReadRequest(from io.Reader) (r Request, err error) {
	line, err := bufio.NewReader(io.LimitReader(from, maxRequest)).ReadBytes('\n')
	if err != nil {
		return r, fmt.Errorf("read a request: %w", err)
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("read a request: %w", err)
	}
	if r.Version != Version {
		return r, fmt.Errorf("the daemon speaks version %d of its protocol, and was asked in version %d", Version, r.Version)
	}
	return r, nil
}

// maxPeers bounds the connections that are served at a time.
const maxPeers = 32

// Serve answers requests until the listener is closed. Handlers get contexts of ctx.
func Serve(ctx context.Context, l *net.UnixListener, handle Handler) error {
	places := make(chan struct{}, maxPeers)
	for {
		c, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("serve the control socket: %w", err)
		}
		places <- struct{}{}
		go func() {
			defer func() { <-places }()
			defer c.Close()
			_ = serve(ctx, c, handle) // the peer has gone
		}()
	}
}

func serve(ctx context.Context, c *net.UnixConn, handle Handler) error {
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	peer, err := peerOf(c)
	if err != nil {
		return err
	}
	var a Answer
	var files []*os.File
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if r, err := ReadRequest(c); err != nil {
		a.Error = err.Error()
	} else if a, files, err = attended(ctx, c, func(ctx context.Context) (Answer, []*os.File) { return handle(ctx, peer, r) }); err != nil {
		return err
	}
	a.Version = Version
	line, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := c.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	// Files come first, a byte with each lot of them, so that the answer is not parted.
	for rest := files; len(rest) > 0; {
		n := min(len(rest), filesPerMessage)
		var fds []int
		for _, f := range rest[:n] {
			fds = append(fds, int(f.Fd()))
		}
		if _, _, err := c.WriteMsgUnix([]byte{'\n'}, unix.UnixRights(fds...), nil); err != nil {
			return err
		}
		rest = rest[n:]
	}
	_, err = c.Write(append(line, '\n'))
	return err
}

// attended has a request answered, with a context that ends when the peer hangs up.
func attended(ctx context.Context, c *net.UnixConn, answer func(context.Context) (Answer, []*os.File)) (a Answer, files []*os.File, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return a, nil, err
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return a, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		// It is called whenever something comes. A peer that has no more to send, and waits for the answer, has not hung up.
		err := raw.Read(func(fd uintptr) bool {
			p := []unix.PollFd{{Fd: int32(fd)}}
			n, err := unix.Poll(p, 0)
			return err == nil && n > 0 && p[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
		})
		if err == nil {
			cancel(errGone)
		}
	}()
	a, files = answer(ctx)
	err = c.SetReadDeadline(time.Unix(1, 0)) // ends the watch
	<-watched
	return a, files, err
}

// peerOf asks the kernel who has connected.
func peerOf(c *net.UnixConn) (p Peer, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return p, err
	}
	var ucred *unix.Ucred
	if e := raw.Control(func(fd uintptr) { ucred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		return p, e
	}
	if err != nil {
		return p, err
	}
	return Peer{ucred.Pid, ucred.Uid}, nil
}

// Ask asks the daemon at a socket. The caller closes the files.
func Ask(socket string, r Request) (a Answer, files []*os.File, err error) {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	switch {
	case errors.Is(err, unix.EACCES):
		return a, nil, fmt.Errorf("ask the daemon: %w; root may, and who is in the group that its configuration names (adduser USER ccagent, and log in anew)", err)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ECONNREFUSED):
		return a, nil, fmt.Errorf("ask the daemon: %w; none runs there (systemctl status ccagent says why)", err)
	case err != nil:
		return a, nil, fmt.Errorf("ask the daemon: %w", err)
	}
	defer c.Close()
	defer func() {
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			files = nil
		}
	}()
	r.Version = Version
	line, err := json.Marshal(r)
	if err != nil {
		return a, nil, err
	}
	if _, err := c.Write(append(line, '\n')); err != nil {
		return a, nil, fmt.Errorf("ask the daemon: %w", err)
	}
	var text []byte
	buf, oob := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4*filesPerMessage))
	for len(text) < maxAnswer {
		n, nOOB, _, _, err := c.ReadMsgUnix(buf, oob)
		received, errFiles := filesOf(oob[:nOOB])
		files = append(files, received...)
		if err = errors.Join(ignoreEOF(err), errFiles); err != nil {
			return a, files, fmt.Errorf("read the daemon's answer: %w", err)
		}
		if n == 0 {
			break
		}
		text = append(text, buf[:n]...)
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, files, fmt.Errorf("read the daemon's answer: %w", err)
	}
	if a.Error != "" {
		return a, files, errors.New(a.Error)
	}
	if len(files) != len(a.Pieces) {
		return a, files, fmt.Errorf("read the daemon's answer: %d files came for %d pieces", len(files), len(a.Pieces))
	}
	return a, files, nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// filesOf takes open files out of a message's ancillary data.
func filesOf(oob []byte) (files []*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "piece"))
		}
	}
	return files, nil
}

// Listen makes the socket, in place of one that no daemon serves any more. The group, if it is
// not negative, may use it.
func Listen(path string, group int) (*net.UnixListener, error) {
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return nil, fmt.Errorf("make the control socket: a daemon serves %s already", path)
	}
	if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("make the control socket: %w", err)
		}
	}
	// Nobody else may connect before the group is set.
	old := unix.Umask(0o177)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	unix.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("make the control socket: %w", err)
	}
	if group >= 0 {
		if err := errors.Join(os.Chown(path, -1, group), os.Chmod(path, 0o660)); err != nil {
			return nil, errors.Join(fmt.Errorf("make the control socket: %w", err), l.Close())
		}
	}
	return l, nil
}
