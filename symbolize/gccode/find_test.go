package gccode_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/elftest"
	"ccagent/internal/testprog"
	"ccagent/symbolize/cfi"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/evidence/symtab"
	"ccagent/symbolize/gccode"
)

// What is found without symbols is what the symbols say: all in which the copying collector
// spends time, nothing that is not the run-time system's, and of the run-time system's other
// functions only helpers to which none but the collector refers.
func TestFind(t *testing.T) {
	testprog.Each(t, func(t *testing.T, release string) {
		for _, threaded := range []bool{false, true} {
			t.Run(fmt.Sprintf("threaded=%v", threaded), func(t *testing.T) {
				f, found := find(t, testprog.Build(t, "threads100", testprog.Options{Release: release, Threaded: threaded}))
				symbols, err := f.Symbols(1 << 30)
				if err != nil {
					t.Fatal(err)
				}
				table := symtab.NewTable(f, elftest.Symbols(symbols), true)
				functions := cfi.Functions(f, 1<<30)
				collector := 0
				for _, s := range symbols {
					of, _, _ := table.Find(s.Addr)
					if of == nil || of.Addr != s.Addr || !functions.Contains(s.Addr) {
						continue
					}
					in := found.Code.Contains(s.Addr)
					switch {
					case in && of.Category == eventlog.CategoryGC:
						collector++
					case in && of.Category == eventlog.CategoryRTS && !helpers[s.Name]:
						t.Errorf("%s, of the run-time system, is taken for the collector's", s.Name)
					case in && of.Category != eventlog.CategoryRTS:
						t.Errorf("%s is taken for the collector's", s.Name)
					case !in && copying[s.Name]:
						t.Errorf("%s is not found", s.Name)
					}
					if lock := found.Locks.Contains(s.Addr); lock != (s.Name == "acquire_spin_lock_slow_path") {
						t.Errorf("%s waits for a lock: %v", s.Name, lock)
					}
				}
				if collector < len(copying) {
					t.Errorf("only %d functions of the collector", collector)
				}
			})
		}
	})
}

var copying = set("evacuate", "evacuate1", "evacuate_large", "evacuate_BLACKHOLE", "evacuate_BLACKHOLE1", "eval_thunk_selector",
	"scavenge_block", "scavenge_block1", "scavenge_loop", "scavenge_loop1", "scavenge_stack", "scavenge_stack1", "scavenge_one",
	"scavenge_mutable_list", "scavenge_mutable_list1", "scavenge_mut_arr_ptrs", "scavengeTSO", "scavenge_until_all_done",
	"GarbageCollect", "gcWorkerThread", "waitForGcThreads", "alloc_todo_block", "todo_block_full", "push_scanned_block",
	"isAlive", "traverseWeakPtrList", "tidyWeakList", "mark_root", "acquire_spin_lock_slow_path")

// helpers are functions of other files: of queues and tables that the collector walks.
var helpers = set("markCapabilities", "mapHashTable", "mapHashTableKeys", "threadStableNameTable", "gcStableNameTable", "threadStablePtrTable",
	"move_STACK", "compactFree", "pushWSDeque", "popWSDeque", "stealWSDeque", "stealWSDeque_")

func set(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

// A program's own C code is not the collector's, nor is anything without a collector.
func TestFindNothing(t *testing.T) {
	f, found := find(t, testprog.Build(t, "ffi", testprog.Options{Threaded: true}))
	symbols, err := f.Symbols(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	var own []string
	for _, s := range symbols {
		if slices.Contains([]string{"c_inner", "c_spin_safe", "c_spin_unsafe", "c_call_back"}, s.Name) {
			own = append(own, s.Name)
			if found.Code.Contains(s.Addr) {
				t.Errorf("%s is taken for the collector's", s.Name)
			}
		}
	}
	if len(own) != 4 || len(found.Code) == 0 {
		t.Errorf("the program has %q, and %d functions of the collector", own, len(found.Code))
	}
	if _, found := find(t, "/proc/self/exe"); len(found.Code)+len(found.Locks) > 0 {
		t.Errorf("a Go program has a collector of Haskell: %v", found)
	}
}

func find(t *testing.T, path string) (*elffile.File, gccode.Collector) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elffile.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	found, err := gccode.Find(context.Background(), f, cfi.Functions(f, 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	return f, found
}

// Of any bytes that look like an executable with a collector, only functions are found.
func FuzzFind(f *testing.F) {
	f.Add([]byte{}, byMessage(), uint64(0x1000), uint64(0x10))
	f.Fuzz(func(t *testing.T, data, code []byte, lo, size uint64) {
		e, err := elffile.Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			e, _ = crafted(code)
		}
		functions := cfi.Functions(e, 1<<20)
		if len(functions) == 0 && lo+size > lo {
			functions = cfi.Ranges{{Lo: lo, Hi: lo + size}}
			if next := lo + size; next+size > next {
				functions = append(functions, cfi.Range{Lo: next, Hi: next + size})
			}
		}
		found, err := gccode.Find(context.Background(), e, functions)
		if err != nil {
			return
		}
		for _, r := range append(found.Code, found.Locks...) {
			if !slices.Contains(functions, r) {
				t.Fatalf("found %v, which is no function", r)
			}
		}
	})
}

// crafted makes an executable of some code at 0x1000 and two messages of the collector at 0x8000.
func crafted(code []byte) (*elffile.File, []byte) {
	const header, entries = 64, 4
	text := make([]byte, 0x1000)
	copy(text, code)
	ro := []byte("\x00evacuate: strange closure type %d\x00scavenge_one: strange object %d\x00")
	names := []byte("\x00.text\x00.rodata\x00")
	at := uint64(header)
	b := make([]byte, header)
	copy(b, "\x7fELF\x02\x01\x01")
	le := binary.LittleEndian
	le.PutUint16(b[16:], 2)
	le.PutUint16(b[18:], 62)
	textAt := at
	b = append(b, text...)
	roAt := uint64(len(b))
	b = append(b, ro...)
	namesAt := uint64(len(b))
	b = append(b, names...)
	le.PutUint64(b[40:], uint64(len(b)))
	le.PutUint16(b[58:], 64)
	le.PutUint16(b[60:], entries)
	le.PutUint16(b[62:], 3)
	section := func(name, kind uint32, flags, addr, off, size uint64) {
		h := make([]byte, 64)
		le.PutUint32(h, name)
		le.PutUint32(h[4:], kind)
		le.PutUint64(h[8:], flags)
		le.PutUint64(h[16:], addr)
		le.PutUint64(h[24:], off)
		le.PutUint64(h[32:], size)
		b = append(b, h...)
	}
	section(0, 0, 0, 0, 0, 0)
	section(1, 1, 6, 0x1000, textAt, uint64(len(text)))
	section(7, 1, 2, 0x8000, roAt, uint64(len(ro)))
	section(0, 3, 0, 0, namesAt, uint64(len(names)))
	f, err := elffile.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		panic(err)
	}
	return f, b
}

func byMessage() []byte {
	code := make([]byte, 0x60)
	copy(code, []byte{0xbf, 0x01, 0x80, 0, 0})              // 0x1000: mov $message, %edi
	copy(code[0x10:], []byte{0xe8, 0xeb, 0xff, 0xff, 0xff}) // 0x1010: call 0x1000
	copy(code[0x20:], []byte{0xe8, 0xeb, 0xff, 0xff, 0xff}) // 0x1020: call 0x1010, an entry
	copy(code[0x30:], []byte{0xe8, 0xeb, 0xff, 0xff, 0xff}) // 0x1030: call 0x1020: no more
	return code
}

// A function that refers to a message of evacuate, and what calls it, are found.
func TestFindByMessage(t *testing.T) {
	f, _ := crafted(byMessage())
	functions := cfi.Ranges{{Lo: 0x1000, Hi: 0x1010}, {Lo: 0x1010, Hi: 0x1020}, {Lo: 0x1020, Hi: 0x1030}, {Lo: 0x1030, Hi: 0x1040}}
	found, err := gccode.Find(context.Background(), f, functions)
	if err != nil || !slices.Equal(found.Code, functions[:3]) {
		t.Errorf("found %v, %v; want the first three", found, err)
	}
}
