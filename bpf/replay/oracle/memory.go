package oracle

import (
	"encoding/binary"
	"fmt"
	"os"
)

// Memory is the memory of a stopped process.
type Memory interface {
	// ReadAt fills p from an address or fails.
	ReadAt(p []byte, address int64) (int, error)
}

// OpenMemory opens the memory of a process that the caller is allowed to trace. The caller
// closes it.
func OpenMemory(pid int) (*os.File, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, fmt.Errorf("open memory of process %d: %w", pid, err)
	}
	return f, nil
}

type reader struct{ Memory }

func (r reader) bytes(address uint64, n int) ([]byte, error) {
	p := make([]byte, n)
	if _, err := r.ReadAt(p, int64(address)); err != nil {
		return nil, fmt.Errorf("read %d bytes at %#x: %w", n, address, err)
	}
	return p, nil
}

func (r reader) word(address uint64) (uint64, error) {
	p, err := r.bytes(address, 8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(p), nil
}

func (r reader) half(address uint64) (uint32, error) {
	p, err := r.bytes(address, 4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(p), nil
}
