package process

import (
	"os"
	"testing"
	"unsafe"
)

var nameInMemory = [...]byte{'r', 'e', 'v', 0xff, 0, 'x'}

// Names are read from memory where no file has them, and what is no name is none.
func TestReadName(t *testing.T) {
	pid := uint32(os.Getpid())
	im := &Image{PID: pid, Memory: &Memory{pid: pid}}
	at := uint64(uintptr(unsafe.Pointer(&nameInMemory)))
	if got := im.ReadName(at); got != "rev�" {
		t.Errorf("name %q", got)
	}
	long := make([]byte, 1000)
	for i := range long {
		long[i] = 'a'
	}
	if got := im.ReadName(uint64(uintptr(unsafe.Pointer(&long[0])))); len(got) != maxName {
		t.Errorf("a long name has %d bytes", len(got))
	}
	for _, bad := range []uint64{0, 8, 1 << 63, ^uint64(0)} {
		if got := im.ReadName(bad); got != "" {
			t.Errorf("at %#x: %q", bad, got)
		}
	}
}
