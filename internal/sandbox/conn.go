package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Conn is the socket between a child and its parent. The parent does not trust what it
// receives.
type Conn struct{ c *net.UnixConn }

func newConn(f *os.File) (*Conn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("use the socket: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("use the socket: of another kind")
	}
	return &Conn{u}, nil
}

func (c *Conn) Close() error { return c.c.Close() }

// Send sends a message: a number that says what it is, and its bytes.
func (c *Conn) Send(head uint64, b []byte) error { return WriteMessage(c.c, head, b) }

// Receive waits for a message of at most limit bytes.
func (c *Conn) Receive(limit uint64) (head uint64, b []byte, err error) {
	return ReadMessage(c.c, limit)
}

// WriteMessage writes a message as Send does: the head, the length and the bytes. Both
// numbers are 64 bits, little-endian.
func WriteMessage(w io.Writer, head uint64, b []byte) error {
	var h [16]byte
	binary.LittleEndian.PutUint64(h[:], head)
	binary.LittleEndian.PutUint64(h[8:], uint64(len(b)))
	// The other end may hang up as soon as it has a message that is only a head.
	if _, err := w.Write(h[:]); err != nil || len(b) == 0 {
		return err
	}
	_, err := w.Write(b)
	return err
}

// ReadMessage reads what WriteMessage wrote. It reads nothing beyond the message.
func ReadMessage(r io.Reader, limit uint64) (head uint64, b []byte, err error) {
	var h [16]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint64(h[8:])
	if n > limit {
		return 0, nil, fmt.Errorf("message of %d bytes is over the limit of %d", n, limit)
	}
	// The buffer grows as bytes arrive, because the length may be wrong.
	const first = 64 << 10
	b = make([]byte, 0, min(n, first))
	for uint64(len(b)) < n {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(n, 4*uint64(cap(b)))), b...)
		}
		got, err := io.ReadFull(r, b[len(b):cap(b)])
		if b = b[:len(b)+got]; err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return binary.LittleEndian.Uint64(h[:]), b, err
		}
	}
	return binary.LittleEndian.Uint64(h[:]), b, nil
}

// filesAtOnce is below SCM_MAX_FD, the kernel's limit of descriptors in a message.
const filesAtOnce = 128

// SendFiles sends descriptors. The files remain the caller's.
func (c *Conn) SendFiles(files ...*os.File) error {
	for len(files) > 0 {
		n := min(len(files), filesAtOnce)
		fds := make([]int, n)
		for i, f := range files[:n] {
			fds[i] = int(f.Fd())
		}
		if _, _, err := c.c.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil); err != nil {
			return fmt.Errorf("send descriptors: %w", err)
		}
		files = files[n:]
	}
	return nil
}

// ReceiveFiles waits for n descriptors.
func (c *Conn) ReceiveFiles(n int) ([]*os.File, error) {
	var files []*os.File
	for len(files) < n {
		var one [1]byte
		oob := make([]byte, unix.CmsgSpace(filesAtOnce*4))
		got, oobn, flags, _, err := c.c.ReadMsgUnix(one[:], oob)
		if err != nil {
			return files, fmt.Errorf("receive descriptors: %w", err)
		}
		if got == 0 || flags&unix.MSG_CTRUNC != 0 {
			return files, errors.New("receive descriptors: some are missing (ulimit -n)")
		}
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil {
			return files, fmt.Errorf("receive descriptors: %w", err)
		}
		before := len(files)
		for i := range messages {
			fds, err := unix.ParseUnixRights(&messages[i])
			if err != nil {
				return files, fmt.Errorf("receive descriptors: %w", err)
			}
			for _, fd := range fds {
				files = append(files, os.NewFile(uintptr(fd), fmt.Sprintf("file %d", len(files))))
			}
		}
		if len(files) == before {
			return files, errors.New("receive descriptors: none came")
		}
	}
	return files, nil
}

// ReceiveFile waits for one descriptor.
func (c *Conn) ReceiveFile() (*os.File, error) {
	files, err := c.ReceiveFiles(1)
	if err != nil {
		return nil, err
	}
	return files[0], nil
}
