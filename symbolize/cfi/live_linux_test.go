package cfi

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"runtime"
	"sort"
	"strings"
	"syscall"
	"testing"

	"ccagent/internal/elftest"
	"ccagent/internal/ghc"
	"ccagent/internal/testprog"
)

// target is a Haskell program under ptrace that executes instruction by
// instruction.
type target struct {
	pid  int
	mem  *os.File
	text text
	regs syscall.PtraceRegs
}

var errExited = errors.New("the program has ended")

func trace(t *testing.T, exe string, args ...string) *target {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "an x86-64 machine"})
	}
	f := elftest.Open(t, exe)
	x := &target{text: text{f: f}}
	for _, s := range f.Segments {
		if s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 {
			x.text.base, x.text.code = s.Addr, f.ReadAddr(s.Addr, s.Filesz)
		}
	}
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	cmd := exec.Command(exe, append(args, "+RTS", "-V0", "-RTS")...) // no timer: one thread
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); errors.Is(err, syscall.EPERM) {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "ptrace"})
	} else if err != nil {
		t.Fatal(err)
	}
	x.pid = cmd.Process.Pid
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if err := x.wait(); err != nil {
		t.Fatal(err)
	}
	var err error
	if x.mem, err = os.OpenFile(fmt.Sprintf("/proc/%d/mem", x.pid), os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.mem.Close() })
	return x
}

// wait waits for the next stop and reads the registers.
func (x *target) wait() error {
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(x.pid, &status, 0, nil); err != nil {
		return err
	}
	if !status.Stopped() {
		return errExited
	}
	return syscall.PtraceGetRegs(x.pid, &x.regs)
}

func (x *target) step() error {
	if err := syscall.PtraceSingleStep(x.pid); err != nil {
		return err
	}
	return x.wait()
}

// runTo goes on until one of the addresses is reached.
func (x *target) runTo(addrs []uint64) error {
	for _, a := range addrs {
		if _, err := x.mem.WriteAt([]byte{0xcc}, int64(a)); err != nil {
			return err
		}
	}
	if err := syscall.PtraceCont(x.pid, 0); err != nil {
		return err
	}
	if err := x.wait(); err != nil {
		return err
	}
	for _, a := range addrs {
		if _, err := x.mem.WriteAt(x.text.code[a-x.text.base:][:1], int64(a)); err != nil {
			return err
		}
	}
	x.regs.Rip--
	return syscall.PtraceSetRegs(x.pid, &x.regs)
}

func (x *target) word(addr uint64) uint64 {
	var b [8]byte
	x.mem.ReadAt(b[:], int64(addr))
	return binary.LittleEndian.Uint64(b[:])
}

// walk checks that frames follow each other from sp to where the thread or the
// chunk of stack ends, or for long enough.
func (x *target) walk(sp uint64) error {
	for n := range 40 {
		info := x.word(sp)
		if !x.text.contains(info) || info&7 != 0 {
			return fmt.Errorf("frame %d, at %#x, is %#x", n, sp, info)
		}
		kind := ghc.ClosureType(binary.LittleEndian.Uint32(x.text.code[info-x.text.base-ghc.InfoType:]))
		switch kind {
		case ghc.StopFrame, ghc.UnderflowFrame, ghc.RetBCO:
			return nil
		case ghc.RetFun:
			sp += 8 * (3 + x.word(sp+8))
			continue
		}
		in := x.text.infoAt(info)
		if in.kind != infoReturn && in.kind != infoUpdate {
			return fmt.Errorf("frame %d, at %#x, is of type %d", n, sp, kind)
		}
		sp += uint64(8 * in.words)
	}
	return nil
}

// At every instruction that Haskell programs execute, in their own code, the
// libraries' and the run-time system's, the row's caller is a return frame from
// which the stack can be walked; and as long as control stays in a procedure,
// it is the same one.
func TestHaskellRowsOfLivePrograms(t *testing.T) {
	for _, c := range []struct {
		title, name string
		options     testprog.Options
		args        []string
	}{
		{"-O0, by pages", "example", testprog.Options{O0: true}, []string{"200000"}},
		{"stripped, by pages", "stm", testprog.Options{NoDebug: true, Strip: true}, nil},
		{"-O2", "maps", testprog.Options{}, []string{"2000", "1000"}},
		{"-O2", "example", testprog.Options{}, []string{"200000"}},
		{"-O0", "example", testprog.Options{O0: true}, []string{"200000"}},
		{"-O2", "exceptions", testprog.Options{}, nil},
		{"-O2", "ffi", testprog.Options{}, nil},
		{"stripped", "stm", testprog.Options{NoDebug: true, Strip: true}, nil},
		{"-prof", "maps", testprog.Options{Prof: true}, []string{"2000", "1000"}},
	} {
		t.Run(c.name+" "+c.title, func(t *testing.T) {
			exe := testprog.Build(t, c.name, c.options)
			table := compile(t, exe, DefaultLimits)
			if strings.HasSuffix(c.title, "by pages") {
				table = allPages(t, exe)
			}
			checkLive(t, trace(t, exe, c.args...), table)
		})
	}
}

// allPages returns a table of all pages.
func allPages(t *testing.T, exe string) *Table {
	pages, err := OpenPages(elftest.Open(t, exe), DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	table := *pages.Table()
	table.Rows = nil
	for page := uint32(0); ; page++ {
		rows := pages.Rows(page)
		if rows == nil {
			return &table
		}
		table.Rows = append(table.Rows, rows...)
	}
}

func checkLive(t *testing.T, x *target, table *Table) {
	// Where Haskell code begins: stops to begin at.
	var entries []uint64
	for addr := x.text.base + 32; addr < x.text.base+uint64(len(x.text.code)); addr += 8 {
		if table.Lookup(addr).Kind == KindHaskell && x.text.infoAt(addr).kind == infoReturn {
			entries = append(entries, addr)
		}
	}
	if len(entries) < 500 {
		t.Fatalf("%d continuations", len(entries))
	}
	r := rand.New(rand.NewSource(1))
	var inHaskell, known, bad int
bursts:
	for range 20 {
		stops := make([]uint64, 0, 400)
		for range cap(stops) {
			stops = append(stops, entries[r.Intn(len(entries))])
		}
		sort.Slice(stops, func(i, j int) bool { return stops[i] < stops[j] })
		if err := x.runTo(stops); err != nil {
			if errors.Is(err, errExited) {
				break
			}
			t.Fatal(err)
		}
		var previous, caller uint64 // the instruction before, if it was Haskell
		for range 400 {
			pc := x.regs.Rip
			rule := table.Lookup(pc)
			switch rule.Kind {
			case KindHaskell:
				inHaskell++
				known++
				now := x.regs.Rbp + uint64(int64(rule.Offset))
				if err := x.walk(now); err != nil {
					bad++
					t.Errorf("at %#x, %v: %v", pc, rule, err)
				} else if previous != 0 && now != caller && x.staysIn(previous) {
					bad++
					t.Errorf("from %#x to %#x, %v, the caller's frame moves by %d", previous, pc, rule, int64(now-caller))
				}
				previous, caller = pc, now
			case KindNone, KindUnknown:
				if x.text.contains(pc) {
					inHaskell++
				}
				previous = 0
			default:
				previous = 0
			}
			if bad > 5 {
				t.FailNow()
			}
			if err := x.step(); errors.Is(err, errExited) {
				break bursts
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	if inHaskell < 1000 {
		t.Errorf("only %d instructions of Haskell", inHaskell)
	}
	// What has no row is the RTS's assembly: applications of unknown
	// functions with their arguments on the stack, and where Sp is loaded.
	if known < inHaskell*3/5 {
		t.Errorf("%d of %d instructions of Haskell have a row", known, inHaskell)
	}
	t.Logf("%d of %d instructions of Haskell have a row", known, inHaskell)
}

// staysIn reports whether the instruction leaves the caller's frame where it
// is: no jump that may leave the procedure, no push of an update frame, no
// reload of Sp.
func (x *target) staysIn(pc uint64) bool {
	in, ok := decode(x.text.code[pc-x.text.base:])
	if !ok {
		return false
	}
	if in.opmap == map0F {
		return in.op&0xf0 != 0x80
	}
	if in.opmap != mapOne {
		return true
	}
	switch {
	case in.op&0xf0 == 0x70, in.op == 0xe9, in.op == 0xeb, in.op == 0xff, in.op == 0xc7, in.op == 0x89:
		return false
	case in.op == 0x8b && in.reg == stgSp:
		return false
	}
	return true
}
