package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Memory reads a process's memory by run-time addresses; it is an io.ReaderAt. It is opened when
// a Haskell program is set up in the walker, or a process is discovered by a table without one, or
// at the first read, and closed when the image's program has ended. Reads fail from then on, as
// they do at addresses where nothing is mapped. It may be used by several goroutines.
type Memory struct {
	pid  uint32
	open sync.Once
	file *os.File
	err  error
}

// hold opens the memory. Later reads see the same program, even if the process has executed
// another by then.
func (m *Memory) hold() {
	m.open.Do(func() { m.file, m.err = os.Open(fmt.Sprintf("/proc/%d/mem", m.pid)) })
}

// ReadAt reads all of buf, or fails.
func (m *Memory) ReadAt(buf []byte, at int64) (int, error) {
	m.hold()
	switch {
	case m.err != nil:
		return 0, fmt.Errorf("read memory of process %d: %w", m.pid, m.err)
	case at < 0:
		return 0, fmt.Errorf("read memory of process %d: %#x is no address of a program", m.pid, uint64(at))
	}
	n, err := m.file.ReadAt(buf, at)
	if err != nil {
		return n, fmt.Errorf("read memory of process %d: %w", m.pid, err)
	}
	return n, nil
}

// Words reads words of 8 bytes.
func (m *Memory) Words(at uint64, words []uint64) error {
	buf := make([]byte, 8*len(words))
	if _, err := m.ReadAt(buf, int64(at)); err != nil {
		return err
	}
	for i := range words {
		words[i] = binary.NativeEndian.Uint64(buf[8*i:])
	}
	return nil
}

// Word reads one word of 8 bytes.
func (m *Memory) Word(at uint64) (uint64, error) {
	var w [1]uint64
	err := m.Words(at, w[:])
	return w[0], err
}

// scattered is how many parts the kernel reads at once at the most.
const scattered = 1024 // IOV_MAX

// Scattered reads parts of equal length at many addresses into buf, one behind the other. It is several times
// faster than as many reads, and sees the program that the process runs now.
func (m *Memory) Scattered(addresses []uint64, buf []byte) error {
	if len(addresses) == 0 {
		return nil
	}
	length := len(buf) / len(addresses)
	for len(addresses) > 0 {
		n := min(len(addresses), scattered)
		remote := make([]unix.RemoteIovec, 0, n)
		for i, at := range addresses[:n] {
			if i > 0 && at == addresses[i-1]+uint64(length) {
				remote[len(remote)-1].Len += length // the kernel takes less time for one part than for two
				continue
			}
			remote = append(remote, unix.RemoteIovec{Base: uintptr(at), Len: length})
		}
		local := []unix.Iovec{{Base: &buf[0], Len: uint64(n * length)}}
		if got, err := unix.ProcessVMReadv(int(m.pid), local, remote, 0); err != nil || got != n*length {
			for i, at := range addresses[:n] { // it says which cannot be read
				if _, err := m.ReadAt(buf[i*length:(i+1)*length], int64(at)); err != nil {
					return err
				}
			}
		}
		addresses, buf = addresses[n:], buf[n*length:]
	}
	return nil
}

// close closes the memory; it cannot be opened again.
func (m *Memory) close() {
	m.open.Do(func() { m.err = os.ErrClosed })
	if m.file != nil {
		m.file.Close() // it was only read
	}
}

// ErrExecuted is returned where a process runs another program than the one that was looked at.
var ErrExecuted = errors.New("the process has executed another program")

// Gone says why the memory cannot be read any more: ErrEnded or ErrExecuted; nil if it still can.
func (m *Memory) Gone() error {
	m.hold()
	if m.err == nil && !empty(m.file) {
		return nil
	}
	now, err := os.Open(fmt.Sprintf("/proc/%d/mem", m.pid))
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			return nil
		}
		return ErrEnded
	}
	defer now.Close() // it was only read
	if empty(now) {
		return ErrEnded
	}
	if m.err != nil {
		return nil // it could not be opened for another reason
	}
	return ErrExecuted
}

// empty reports whether nothing is behind a file of a process's memory: at an address where nothing is mapped there is
// another error than the end of the file.
func empty(memory *os.File) bool {
	var b [1]byte
	_, err := memory.ReadAt(b[:], 0)
	return errors.Is(err, io.EOF) || errors.Is(err, unix.ESRCH)
}
