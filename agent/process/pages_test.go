package process

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"ccagent/agent/invoker"
	"ccagent/agent/sink"
	"ccagent/bpf"
	"ccagent/internal/testprog"
	"ccagent/symbolize/cfi"
	"ccagent/symbolize/worker"

	"github.com/cilium/ebpf/rlimit"
)

func TestMain(m *testing.M) {
	worker.Main()
	os.Exit(m.Run())
}

// A page is to be asked for when it was missed twice; what has rules already is not missed.
func TestPagesNote(t *testing.T) {
	var rows []byte
	for _, n := range []uint32{0, 0, 0x100, 1, 0x200, 0} { // addresses and rules
		rows = binary.LittleEndian.AppendUint32(rows, n)
	}
	const base = 0x400000
	p := &pages{table: &unwindTable{base: base}, rows: rows, missed: map[uint32]int{}}
	for _, addr := range []uint64{0, 0x150, 0x150, 0x7000, 0x50, 0x5000, 0x250, 0x4abc, 0x90} {
		p.note(base + addr)
	}
	p.note(base - 1)
	if !slices.Equal(p.ripe, []uint32{0, 1}) || p.lacked != 7 {
		t.Errorf("pages %v are to be asked for, which %d samples lacked", p.ripe, p.lacked)
	}
}

// The rows of a large program's Haskell code are compiled where samples lack them, and the next
// capture has them from the start.
func TestPagesByNeed(t *testing.T) {
	testprog.NeedRoot(t)
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(testprog.Build(t, "rev", testprog.Options{}))
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true} // it stops at its first instruction
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	who := &invoker.User{}
	cache := &worker.UnwindCache{Dir: filepath.Join(t.TempDir(), "index")}
	var asked []uint32
	for round := range 2 {
		capture(t, who, cache, uint32(cmd.Process.Pid), func(ps *Table, im *Image) {
			p := im.Exe.unwind.pages
			if p == nil {
				t.Fatal("the program was compiled as a whole")
			}
			if round == 1 {
				for _, page := range asked {
					if p.missed[page] >= 0 {
						t.Errorf("page %d was not kept", page)
					}
				}
				return
			}
			for _, m := range im.Mappings {
				for addr := m.Start; addr < m.End; addr += cfi.PageBytes / 3 {
					ps.NoteUnwound(im, addr)
				}
			}
			asked = slices.Clone(p.ripe)
			if err := ps.AskForPages(); err != nil {
				t.Fatal(err)
			}
			d := <-ps.tables.pagesDone
			if d.err != nil || len(d.pages) != len(asked) || len(asked) < 10 {
				t.Fatalf("%d pages of %d, %v", len(d.pages), len(asked), d.err)
			}
			if err := ps.takePages(d); err != nil || im.Exe.unwind.pages != p || p.asked {
				t.Errorf("the pages were not taken: %v", err)
			}
		})
	}
}

// patience is much longer than any machine takes to compile the tables of a program.
const patience = 10 * time.Minute

// capture has the table follow a process, with tables, and ends as a capture does.
func capture(t *testing.T, who *invoker.User, cache *worker.UnwindCache, pid uint32, then func(*Table, *Image)) {
	walker, err := bpf.Load(bpf.Config{MaxFrames: 32, CPUs: 1, RingBytes: os.Getpagesize(), UnwindRows: UnwindRows(0)})
	if err != nil {
		t.Fatal(err)
	}
	defer walker.Close()
	warn := func(line string) { t.Error(line) }
	log := sink.New(sink.Config{Who: who, Warn: warn})
	if err := log.Create(filepath.Join(t.TempDir(), "log.eventlog"), "", 0); err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ps := New(walker, sink.NewSet(warn, log), who)
	defer ps.Close()
	defer ps.StopCompiling(patience)
	ps.tables.cache, ps.tables.whole = cache, 0
	im, err := ps.Discover(log, pid, "rev", "", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := ps.TakeTables(patience); err != nil {
		t.Fatal(err)
	}
	if im.Exe == nil || im.Exe.unwind == nil {
		t.Fatal("the program has no table")
	}
	then(ps, im)
}
