package elffile

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"ccagent/internal/testprog"
)

// A program with UPX's mark behind its headers, and without sections, is a packed one. The file is made
// here: no stable release of Debian has UPX.
func TestPacker(t *testing.T) {
	exe, err := os.ReadFile("/bin/true")
	if err != nil {
		testprog.Skip(t, &testprog.UnsupportedError{Need: err.Error()})
	}
	packer := func(exe []byte) string {
		t.Helper()
		f, err := Open(bytes.NewReader(exe), int64(len(exe)))
		if err != nil {
			t.Fatal(err)
		}
		return f.Packer()
	}
	headers := 64 + 56*int(binary.LittleEndian.Uint16(exe[56:]))
	copy(exe[headers+4:], "UPX!")
	if got := packer(exe); got != "" {
		t.Errorf("a program with sections is packed by %q", got)
	}
	clear(exe[40:48]) // section headers: their offset, count and names
	clear(exe[60:64])
	if got := packer(exe); got != "UPX" {
		t.Errorf("packed by %q", got)
	}
	clear(exe[headers+4 : headers+8])
	if got := packer(exe); got != "" {
		t.Errorf("a program without sections is packed by %q", got)
	}
}
