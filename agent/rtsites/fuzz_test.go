package rtsites

import (
	"bytes"
	"os"
	"testing"

	"ccagent/internal/testprog"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/elffile"
)

// FuzzFind reads, of mutated executables, all that the agent reads itself, as root: what a
// file is, its run-time system's symbols, and the places of probes in its code. Its corpus
// holds pieces that are written over a program of GHC's at an offset.
func FuzzFind(f *testing.F) {
	program, err := os.ReadFile(testprog.Build(f, "quick", testprog.Options{}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), []byte("\x7fELF"))
	f.Add(uint32(18), []byte{0x3e, 0x00})
	f.Add(uint32(32), bytes.Repeat([]byte{0xff}, 32))
	f.Add(uint32(len(program)-4096), bytes.Repeat([]byte{0xff, 0x7f}, 2048))
	f.Add(uint32(len(program)/2), bytes.Repeat([]byte{0x0f, 0x84, 0xff}, 1000))
	f.Fuzz(func(t *testing.T, at uint32, piece []byte) {
		b := bytes.Clone(program)
		copy(b[int(at)%len(b):], piece)
		e, err := elffile.Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		_ = binary.IdentifyFile(e)
		symbols, err := ReadSymbols(e, nil)
		if err != nil {
			return
		}
		find := func() (*Symbols, error) { return symbols, nil }
		for _, library := range []bool{false, true} {
			if task := FindTask(e, library, true, find); task.Offset > 0 || task.InModule > maxThreadLocal {
				t.Fatalf("the Task at %+v", task)
			}
			_ = FindTask(e, library, false, find)
		}
		transactions, err := FindTransactions(symbols)
		if (transactions == nil) == (err == nil) {
			t.Fatalf("FindTransactions = %v, %v", transactions, err)
		}
		sites, err := Find(symbols)
		if (sites == nil) == (err == nil) {
			t.Fatalf("Find = %v, %v", sites, err)
		}
		if err != nil {
			return
		}
		for _, s := range append(sites.GC.Sites, sites.Threads.Sites...) {
			if !e.Executable(s.Addr) {
				t.Fatalf("a probe at %#x, where there is no code", s.Addr)
			}
		}
	})
}
