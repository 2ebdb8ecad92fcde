package bpf

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"testing"
	"unsafe"

	"ccagent/internal/fair"
	"ccagent/internal/testprog"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Constants that BTF does not carry have the same values in Go as in the C headers.
func TestConstantsAgreeWithHeaders(t *testing.T) {
	source, err := os.ReadFile("c/record.h")
	if err != nil {
		t.Fatal(err)
	}
	define := func(name string) int {
		m := regexp.MustCompile(`(?m)^#define ` + name + ` (\d+)`).FindSubmatch(source)
		if m == nil {
			t.Fatalf("record.h does not define %s", name)
		}
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for name, got := range map[string]int{
		"MAX_FRAMES":          MaxFrames,
		"MAX_REGIONS":         MaxRegions,
		"FRAME_KIND_SHIFT":    FrameKindShift,
		"UNWIND_BUCKET_SHIFT": bucketShift,
	} {
		if want := define(name); got != want {
			t.Errorf("%s is %d in C, %d in Go", name, want, got)
		}
	}
	if got, want := MaxLeafFrames, define("MAX_FRAMES")-define("MAX_ROOT_FRAMES")-1; got != want {
		t.Errorf("MAX_LEAF_FRAMES is %d in C, %d in Go", want, got)
	}
	if got := unsafe.Sizeof(samplerUnwindRow{}); got != UnwindRowSize {
		t.Errorf("a row has %d bytes in C, %d in Go", got, UnwindRowSize)
	}
	if got := unsafe.Sizeof(samplerUnwindBucket{}); got != bucketSize {
		t.Errorf("a bucket has %d bytes in C, %d in Go", got, bucketSize)
	}
}

// A bucket's rows are exactly those that hold for some address in the bucket.
func TestBuckets(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		addrs := []uint32{0}
		for n := r.IntN(300); n > 0; n-- {
			addrs = append(addrs, addrs[len(addrs)-1]+1+uint32(r.IntN(1<<r.IntN(13))))
		}
		var rows []byte
		for i, a := range addrs {
			rows = binary.NativeEndian.AppendUint32(rows, a)
			rows = binary.NativeEndian.AppendUint32(rows, uint32(i))
		}
		buckets := Buckets(rows)
		for range 200 {
			addr := uint32(r.IntN(int(addrs[len(addrs)-1]) + 1))
			want := 0
			for i, a := range addrs {
				if a <= addr {
					want = i
				}
			}
			b := buckets[addr>>bucketShift*bucketSize:]
			first, last := binary.NativeEndian.Uint32(b), binary.NativeEndian.Uint32(b[4:])
			if uint32(want) < first || uint32(want) > last {
				t.Fatalf("row %d holds at %d, but its bucket has %d to %d", want, addr, first, last)
			}
			if last-first > 1<<bucketShift {
				t.Fatalf("a bucket has %d rows", last-first)
			}
		}
	}
}

// Rows that are added to a part of a table are found there, and the table's own elsewhere.
func TestAddRows(t *testing.T) {
	s, err := Load(Config{MaxFrames: 128, CPUs: 1, RingBytes: 1 << 16, UnwindRows: 1000})
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) && os.Geteuid() != 0 {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "permission to load BPF programs: " + err.Error()})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	encode := func(rows ...uint32) (b []byte) { // addresses and rules
		for _, n := range rows {
			b = binary.NativeEndian.AppendUint32(b, n)
		}
		return b
	}
	if _, err := s.AddTable(0, encode(0, 9, 0x100, 9), nil); err != nil { // another's
		t.Fatal(err)
	}
	table, err := s.AddTable(0, encode(0, 1, 0x180, 2, 0x1000, 3), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range [][]byte{encode(0x400, 4, 0x510, 5, 0x511, 6), encode(0xf00, 7)} {
		if err := s.AddRows(table, rows, binary.NativeEndian.Uint32(rows), 0x200); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddRows(table, encode(0x8000, 8), 0x8000, 0x200); err != nil {
		t.Errorf("rows beyond the table: %v", err)
	}
	if err := s.AddRows(table, make([]byte, 1000*UnwindRowSize), 0, 0x200); !errors.Is(err, ErrTableFull) {
		t.Errorf("rows beyond the room give %v", err)
	}
	for addr, want := range map[uint32]uint32{
		0: 1, 0x17f: 1, 0x180: 2, 0x3ff: 2, 0x400: 4, 0x50f: 4, 0x510: 5, 0x511: 6, 0x5ff: 6, 0x600: 2, 0xeff: 2, 0xf00: 7, 0x1000: 7,
	} {
		if got := ruleAt(t, s, table, addr); got != want {
			t.Errorf("at %#x rule %d holds, want %d", addr, got, want)
		}
	}
}

// ruleAt looks a rule's number up as the walker does.
func ruleAt(t *testing.T, s *Sampler, table Table, addr uint32) uint32 {
	t.Helper()
	read := func(chunks *ebpf.Map, index uint32) (first, second uint32) {
		var m *ebpf.Map
		if err := chunks.Lookup(index/chunkElements, &m); err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		var b [8]byte
		if err := m.Lookup(index%chunkElements, &b); err != nil {
			t.Fatal(err)
		}
		return binary.NativeEndian.Uint32(b[:]), binary.NativeEndian.Uint32(b[4:])
	}
	first, last := read(s.maps.UnwindBuckets, table.firstBucket+addr>>bucketShift)
	for i := last; ; i-- {
		at, rule := read(s.maps.UnwindRows, table.firstRow+i)
		if at <= addr {
			return rule
		}
		if i == first {
			t.Fatalf("no row of the bucket holds at %#x", addr)
		}
	}
}

// Where programs of several users are walked, those of one have at most half of the room, in tables and in parts that are added to them.
func TestTablesOfOneUserLeaveOthersTheirs(t *testing.T) {
	s, err := Load(Config{MaxFrames: 128, CPUs: 1, RingBytes: 1 << 16, UnwindRows: 1000, ManyUsers: true})
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) && os.Geteuid() != 0 {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "permission to load BPF programs: " + err.Error()})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rows := func(n int) []byte { return make([]byte, n*UnwindRowSize) }
	table, err := s.AddTable(1, rows(400), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddTable(1, rows(101), nil); !errors.Is(err, ErrTableFull) || !errors.Is(err, fair.ErrShare) {
		t.Errorf("more than half of the rows: %v", err)
	}
	if err := s.AddRows(table, rows(101), 0, 0x100); !errors.Is(err, fair.ErrShare) {
		t.Errorf("more than half of the rows, in parts: %v", err)
	}
	rules := make([]byte, (s.unwind.rules.limit/2+1)*uint32(s.unwind.rules.element))
	if _, err := s.AddTable(1, rows(1), rules); !errors.Is(err, fair.ErrShare) {
		t.Errorf("more than half of the rules: %v", err)
	}
	far := binary.NativeEndian.AppendUint32(nil, s.unwind.buckets.limit/2<<bucketShift)
	if _, err := s.AddTable(1, append(far, 0, 0, 0, 0), nil); !errors.Is(err, fair.ErrShare) {
		t.Errorf("more than half of the buckets: %v", err)
	}
	// What was refused has taken nothing.
	for user, n := range map[uint32]int{1: 100, 2: 500} {
		if _, err := s.AddTable(user, rows(n), nil); err != nil {
			t.Errorf("what is left for user %d: %v", user, err)
		}
	}
}

// The kernel's verifier accepts the walker, and AddTable stores tables until the room is
// used up.
func TestLoad(t *testing.T) {
	s, err := Load(Config{MaxFrames: 128, CPUs: 1, RingBytes: 1 << 16, UnwindRows: 1000})
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) && os.Geteuid() != 0 {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "permission to load BPF programs: " + err.Error()})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	prog, err := s.EventProgram(3)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := prog.Info(); err == nil {
		if n, ok := info.VerifiedInstructions(); ok {
			t.Logf("the verifier processed %d instructions", n)
		}
	}
	table, err := s.AddTable(0, make([]byte, 600*UnwindRowSize), nil)
	if err != nil || table.firstRow != 0 {
		t.Errorf("first table: %+v, %v", table, err)
	}
	if _, err := s.AddTable(0, make([]byte, 600*UnwindRowSize), nil); !errors.Is(err, ErrTableFull) {
		t.Errorf("a table beyond the room gives %v", err)
	}
	if err := s.SetLayout(1, ProcessLayout{}); err != nil {
		t.Error(err)
	}
	if err := s.SetRegions(1, make([]Region, MaxRegions+1)); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := s.Forget(1); err != nil {
			t.Error(err)
		}
	}
}

// Load refuses frame budgets that are out of range.
func TestLoadRefusesBudgets(t *testing.T) {
	for _, n := range []int{0, -1, MaxLeafFrames + 1} {
		if s, err := Load(Config{MaxFrames: n}); err == nil {
			s.Close()
			t.Errorf("a budget of %d frames was taken", n)
		}
	}
}

// HeapLayout has the offsets of each release's headers, and takes the newest layout for
// unknown versions.
func TestHeapLayout(t *testing.T) {
	for _, c := range []struct {
		version            string
		profiled           bool
		id, stackobj, size uint16
		label              uint16
		assumed            bool
	}{
		// offsetof in each version's headers, x86-64
		{"8.10.7", false, 48, 24, 8, 0, false},
		{"9.0.2", false, 48, 24, 8, 0, false},
		{"9.0.2", true, 64, 40, 24, 0, false},
		{"9.6.6", false, 48, 24, 8, 88, false},
		{"9.6.6", true, 64, 40, 24, 104, false},
		{"9.10.3", false, 56, 24, 8, 96, false},
		{"9.10.3", true, 72, 40, 24, 112, false},
		{"9.14.1", false, 56, 24, 8, 96, false},
		{"9.99.1", false, 56, 24, 8, 96, true},
		{"", false, 56, 24, 8, 96, true},
		{"nonsense", false, 56, 24, 8, 96, true},
	} {
		l, assumed := HeapLayout(c.version, c.profiled, false)
		if l.TsoId != c.id || l.TsoStackobj != c.stackobj || l.StackSize != c.size || l.TsoLabel != c.label || assumed != c.assumed {
			t.Errorf("%q profiled %v: %+v, assumed %v; want %+v", c.version, c.profiled, l, assumed, c)
		}
	}
}

// Task.incall is at its offset in each release's rts/Task.h and rts/OSThreads.h on Linux
// with glibc, and TSO fields lie in what is read of a TSO. Before incall are: id, node,
// condition variable (48 bytes; since 9.2 with a clock's id, 56), lock (40), wakeup, cap.
func TestTaskLayout(t *testing.T) {
	for version, threaded := range map[string]uint16{
		"8.10.7": 120, "9.0.2": 120, "9.2.8": 128, "9.4.8": 128, "9.6.6": 128, "9.8.4": 128, "9.10.3": 128, "9.12.2": 128,
	} {
		for _, profiled := range []bool{false, true} {
			if l, assumed := HeapLayout(version, profiled, true); l.TaskIncall != threaded || assumed {
				t.Errorf("GHC %s, threaded: incall at %d, assumed %v; want %d", version, l.TaskIncall, assumed, threaded)
			}
			if l, _ := HeapLayout(version, profiled, false); l.TaskIncall != 8 {
				t.Errorf("GHC %s: incall at %d, want 8", version, l.TaskIncall)
			}
		}
	}
	// The bytes read of a TSO include all the fields in every version.
	for _, version := range []string{"8.10.7", "9.0.2", "9.2.8", "9.4.8", "9.6.6", "9.8.4", "9.10.3", "9.12.2", "9.14.1", ""} {
		for _, profiled := range []bool{false, true} {
			l, _ := HeapLayout(version, profiled, true)
			if l.TsoRead < l.TsoId+8 || l.TsoRead < l.TsoLabel+8 || l.TsoRead < l.TsoStackobj+8 || l.TsoRead >= 128 {
				t.Errorf("GHC %s: %d bytes of a thread are read, %+v", version, l.TsoRead, l)
			}
		}
	}
}

// A table may lie in several chunks; each chunk is made when rows come into it, and holds what those before it have no room for.
func TestTablesGrow(t *testing.T) {
	s, err := Load(Config{MaxFrames: 128, CPUs: 1, RingBytes: 1 << 16, UnwindRows: 8 * chunkElements})
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) && os.Geteuid() != 0 {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "permission to load BPF programs: " + err.Error()})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const count, distance = chunkElements + 1000, 1 << bucketShift
	var rows []byte // one a bucket
	for i := range uint32(count) {
		rows = binary.NativeEndian.AppendUint32(rows, i*distance)
		rows = binary.NativeEndian.AppendUint32(rows, i+1)
	}
	expect := func(chunks int) {
		t.Helper()
		if r, b := len(s.unwind.rows.chunks), len(s.unwind.buckets.chunks); r != chunks || b != chunks {
			t.Errorf("%d and %d chunks of rows and buckets, %d of each expected", r, b, chunks)
		}
	}
	expect(0)
	table, err := s.AddTable(0, rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	expect(2)
	// The page's rows lie on both sides of a chunk's end, as its buckets do.
	at := uint32(chunkElements-1) * distance
	page := []byte(nil)
	for i := range uint32(2) {
		page = binary.NativeEndian.AppendUint32(page, at+i*distance)
		page = binary.NativeEndian.AppendUint32(page, 7+i)
	}
	if err := s.AddRows(table, page, at, 2*distance); err != nil {
		t.Fatal(err)
	}
	expect(2)
	for i, want := range map[uint32]uint32{0: 1, 1: 2, chunkElements - 2: chunkElements - 1, chunkElements - 1: 7, chunkElements: 8, chunkElements + 1: chunkElements + 2, count - 1: count} {
		if got := ruleAt(t, s, table, i*distance+distance/2); got != want {
			t.Errorf("in bucket %d rule %d holds, want %d", i, got, want)
		}
	}
	if _, err := s.AddTable(0, rows, nil); !errors.Is(err, ErrTableFull) { // there is room for two chunks of buckets
		t.Errorf("a table beyond the room gives %v", err)
	}
}
