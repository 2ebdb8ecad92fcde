package symbolize

import (
	"bytes"
	"context"
	"os"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/elffile"
)

// FuzzRun symbolises mutated executables, as a whole: every parser, and what
// is made of their results. Its corpus holds pieces that are written over a
// program of GHC's at an offset.
func FuzzRun(f *testing.F) {
	program, err := os.ReadFile(testprog.Build(f, "quick", testprog.Options{}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), []byte("\x7fELF"), uint64(0x404000))
	f.Add(uint32(40), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, uint64(1))
	f.Add(uint32(len(program)-64), bytes.Repeat([]byte{0xff}, 64), uint64(0x404020))
	f.Fuzz(func(t *testing.T, at uint32, piece []byte, addr uint64) {
		b := bytes.Clone(program)
		copy(b[int(at)%len(b):], piece)
		job := Job{Memory: 8 << 20, Modules: []Module{{ID: 1, Path: "p", File: bytes.NewReader(b), Size: int64(len(b))}}}
		for i := range uint64(64) {
			job.Modules[0].Addresses = append(job.Modules[0].Addresses, Address{Addr: addr + i*97, Call: i&1 == 0})
		}
		if opened, err := elffile.Open(bytes.NewReader(b), int64(len(b))); err == nil {
			_, _ = binary.UnnotedPackages(opened)
		}
		located := 0
		_, err := Run(context.Background(), job, func(e eventlog.Event) error {
			if l, ok := e.(*eventlog.Locations); ok {
				located += len(l.Locations)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if located != 0 && located != 64 {
			t.Fatalf("%d of 64 addresses were answered", located)
		}
	})
}
