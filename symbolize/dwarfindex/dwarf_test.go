package dwarfindex

import (
	"bytes"
	"context"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"

	"github.com/google/go-cmp/cmp"
)

// load reads an executable's DWARF sections by debug/elf, which decompresses.
func load(tb testing.TB, file string) (Sections, *elf.File) {
	tb.Helper()
	f, err := elf.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	get := func(name string) []byte {
		s := f.Section(name)
		if s == nil {
			return nil
		}
		b, err := s.Data()
		if err != nil {
			tb.Fatal(err)
		}
		return b
	}
	info := get(".debug_info")
	return Sections{
		Info: bytes.NewReader(info), InfoSize: uint64(len(info)), Abbrev: get(".debug_abbrev"),
		Str: get(".debug_str"), LineStr: get(".debug_line_str"), Line: get(".debug_line"),
	}, f
}

func executable(f *elf.File) func(uint64) bool {
	return func(a uint64) bool {
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && a >= p.Vaddr && a-p.Vaddr < p.Memsz {
				return true
			}
		}
		return false
	}
}

func build(tb testing.TB, file string) (*Index, *elf.File) {
	tb.Helper()
	s, f := load(tb, file)
	x, err := Build(context.Background(), s, Options{Executable: executable(f)})
	if err != nil {
		tb.Fatal(err)
	}
	if len(x.Problems) > 0 {
		tb.Errorf("problems: %q", x.Problems)
	}
	return x, f
}

// die is a block or procedure as another reader sees it.
type die struct {
	Kind       string // "proc", "block"
	Name       string
	Lo, Hi     uint64
	Parent     int // index of the enclosing one, −1 for procedures
	TickParent int // −1 for none
	Notes      []string
}

// oracle reads the tree by debug/dwarf.
func oracle(tb testing.TB, f *elf.File) []die {
	tb.Helper()
	d, err := f.DWARF()
	if err != nil {
		tb.Fatal(err)
	}
	var out []die
	at := map[dwarf.Offset]int{}
	ticks := map[int]dwarf.Offset{}
	stack := []int{}
	for r := d.Reader(); ; {
		e, err := r.Next()
		if err != nil {
			tb.Fatal(err)
		}
		if e == nil {
			break
		}
		if e.Tag == 0 {
			stack = stack[:len(stack)-1]
			continue
		}
		self := -1
		if len(stack) > 0 {
			self = stack[len(stack)-1]
		}
		switch e.Tag {
		case dwarf.TagCompileUnit:
			self = -1
			if l, _ := e.Val(dwarf.AttrLanguage).(int64); l != languageHaskell {
				r.SkipChildren()
				continue
			}
		case dwarf.TagSubprogram, dwarf.TagLexDwarfBlock:
			n := die{Kind: "block", Parent: self, TickParent: -1}
			n.Name, _ = e.Val(dwarf.AttrName).(string)
			n.Lo, _ = e.Val(dwarf.AttrLowpc).(uint64)
			n.Hi, _ = e.Val(dwarf.AttrHighpc).(uint64)
			if e.Tag == dwarf.TagSubprogram {
				n.Kind, n.Parent = "proc", -1
				for _, a := range []dwarf.Attr{attrMIPSLinkage, dwarf.AttrLinkageName} {
					if s, ok := e.Val(a).(string); ok {
						n.Name = s
					}
				}
				if off, ok := e.Val(attrGHCTickPar).(dwarf.Offset); ok {
					ticks[len(out)] = off
				}
			}
			self = len(out)
			at[e.Offset] = self
			out = append(out, n)
		case tagGHCSrcNote:
			file, _ := e.Val(attrGHCSpanFile).(string)
			num := func(a dwarf.Attr) int64 { v, _ := e.Val(a).(int64); return v }
			out[self].Notes = append(out[self].Notes, fmt.Sprintf("%s:%d:%d-%d:%d", path.Clean(file),
				num(attrGHCSpanLine), num(attrGHCSpanCol), num(attrGHCSpanELine), num(attrGHCSpanECol)))
		}
		if e.Children {
			stack = append(stack, self)
		}
	}
	for i, off := range ticks {
		if p, ok := at[off]; ok {
			out[i].TickParent = p
		}
	}
	return out
}

// ours returns the index's tree in the same shape: blocks are in the order of
// their entries.
func ours(x *Index) []die {
	var out []die
	for i := 1; i <= x.Blocks(); i++ {
		b := x.Block(BlockID(i))
		p := x.Proc(b.Proc)
		n := die{Kind: "block", Lo: b.Lo, Hi: b.Hi, Parent: int(b.Parent) - 1, TickParent: -1}
		if p.Root == b.ID {
			n.Kind, n.Name, n.TickParent = "proc", p.Linkage, int(p.TickParent)-1
		} else {
			for _, s := range x.Notes(nil, b.ID) {
				n.Notes = append(n.Notes, spanText(x, s))
			}
		}
		out = append(out, n)
	}
	return out
}

func spanText(x *Index, id uint32) string {
	s := x.Span(id)
	return fmt.Sprintf("%s:%d:%d-%d:%d", x.File(s.File), s.Line, s.Col, s.EndLine, s.EndCol)
}

var programs = []string{"rev", "fusion", "maps", "exceptions", "example"}

// TestAgainstDebugDWARF compares the whole tree with Go's own reader.
func TestAgainstDebugDWARF(t *testing.T) {
	testprog.Each(t, func(t *testing.T, release string) {
		for _, name := range programs {
			x, f := build(t, testprog.Build(t, name, testprog.Options{Release: release}))
			want, got := oracle(t, f), ours(x)
			for i := range want {
				if want[i].Kind == "block" {
					want[i].Name = ""
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: tree differs from debug/dwarf's (-want +got):\n%.4000s", name, diff)
			}
			if len(got) < 20 || x.Spans() < 5 {
				t.Errorf("%s: only %d blocks and %d spans: the program tests nothing", name, len(got), x.Spans())
			}
		}
	})
}

var (
	readelfEntry = regexp.MustCompile(`^ <(\d+)><[0-9a-f]+>: Abbrev Number: \d+ \((.*)\)`)
	readelfAttr  = regexp.MustCompile(`^    <[0-9a-f]+>   (\S+(?: \S+ value)?(?:: [0-9a-f]+)?)\s*: (.*)$`)
)

// TestAgainstReadelf compares ranges and notes with binutils' reader.
func TestAgainstReadelf(t *testing.T) {
	readelf := testprog.NeedTool(t, "readelf", "binutils")
	testprog.Each(t, func(t *testing.T, release string) {
		againstReadelf(t, readelf, testprog.Build(t, "fusion", testprog.Options{Release: release}))
	})
}

func againstReadelf(t *testing.T, readelf, exe string) {
	x, _ := build(t, exe)
	out, err := exec.Command(readelf, "--debug-dump=info", exe).Output()
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		Lo, Hi uint64
		Notes  int
	}
	var want []entry
	in := false            // in a block or procedure, not yet in another entry
	at := map[string]int{} // the last block or procedure, by depth
	for _, line := range strings.Split(string(out), "\n") {
		if m := readelfEntry.FindStringSubmatch(line); m != nil {
			in = false
			switch {
			case strings.Contains(m[2], "DW_TAG_subprogram"), strings.Contains(m[2], "DW_TAG_lexical_block"):
				at[m[1]] = len(want)
				want, in = append(want, entry{}), true
			case strings.Contains(m[2], "5b00"):
				depth, _ := strconv.Atoi(m[1])
				want[at[strconv.Itoa(depth-1)]].Notes++
			}
			continue
		}
		m := readelfAttr.FindStringSubmatch(line)
		if !in || m == nil {
			continue
		}
		switch m[1] {
		case "DW_AT_low_pc":
			want[len(want)-1].Lo, _ = strconv.ParseUint(strings.TrimSpace(m[2]), 0, 64)
		case "DW_AT_high_pc":
			want[len(want)-1].Hi, _ = strconv.ParseUint(strings.TrimSpace(m[2]), 0, 64)
		}
	}
	var got []entry
	for _, d := range ours(x) {
		got = append(got, entry{d.Lo, d.Hi, len(d.Notes)})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries differ from readelf's (-want +got):\n%.4000s", diff)
	}
}

// dumped is a block of GHC's -ddump-debug.
type dumped struct {
	proc    bool
	label   string // as the assembler sees it
	tick    string // the best note, "" for none
	removed bool
	parent  int
}

var dumpLine = regexp.MustCompile(`^(\s*)\[?\s*(proc|blk|pp-blk) (\S+) \((\S+)\)\s*(src<(.*?)>\s)?\s*(pos \d+|removed)`)

// parseDump reads the block trees of a .dump-debug file: nesting is by
// brackets, as GHC pretty-prints lists.
func parseDump(t *testing.T, text string) []dumped {
	t.Helper()
	var out []dumped
	type open struct{ depth, index int }
	var stack []open
	depth := 0
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "=====") {
			stack, depth = nil, 0
			continue
		}
		m := dumpLine.FindStringSubmatch(line)
		trimmed := strings.TrimSpace(line)
		if m != nil {
			if strings.HasPrefix(trimmed, "[") {
				depth++
			}
			for len(stack) > 0 && stack[len(stack)-1].depth >= depth {
				stack = stack[:len(stack)-1]
			}
			d := dumped{proc: m[2] == "proc", label: m[3], tick: tickText(m[6]), removed: m[7] == "removed", parent: -1}
			if len(stack) > 0 {
				d.parent = stack[len(stack)-1].index
			}
			stack = append(stack, open{depth, len(out)})
			out = append(out, d)
		}
		// Lists of blocks that end here; unwind lists open and close in a line or
		// hold braces.
		tail := trimmed
		if i := strings.LastIndexByte(tail, '}'); i >= 0 {
			tail = tail[i+1:]
		} else if i := strings.LastIndex(tail, "[]"); i >= 0 {
			tail = tail[i+2:]
		} else {
			tail = ""
		}
		tail = strings.TrimSuffix(tail, ",")
		if n := strings.Count(tail, "]"); n > 1 {
			depth -= n - 1
		}
	}
	return out
}

// tickText turns GHC's notation of a span into ours: inclusive columns into
// one-past columns.
func tickText(s string) string {
	if s == "" {
		return ""
	}
	file, span, ok := strings.Cut(s, ":")
	if !ok {
		return "?" + s
	}
	var l1, c1, l2, c2 int
	switch {
	case strings.HasPrefix(span, "("):
		fmt.Sscanf(span, "(%d,%d)-(%d,%d)", &l1, &c1, &l2, &c2)
	case strings.Contains(span, "-"):
		fmt.Sscanf(span, "%d:%d-%d", &l1, &c1, &c2)
		l2 = l1
	default:
		fmt.Sscanf(span, "%d:%d", &l1, &c1)
		l2, c2 = l1, c1
	}
	return fmt.Sprintf("%s:%d:%d-%d:%d", path.Clean(file), l1, c1, l2, c2+1)
}

// TestAgainstDumpDebug compares with what GHC says itself: every procedure is
// there; a block's parent is its parent's, across procedures by the tick
// parent; and the best note of each block is in its cause set.
func TestAgainstDumpDebug(t *testing.T) {
	testprog.Each(t, func(t *testing.T, release string) {
		for _, name := range []string{"fusion", "rev", "maps"} {
			againstDumpDebug(t, name, release)
		}
	})
}

func againstDumpDebug(t *testing.T, name, release string) {
	dir := t.TempDir()
	testprog.CopySource(t, name, dir)
	testprog.Compile(t, release, dir, "-v0", "-O2", "-g3", "-ddump-debug", "-ddump-to-file", "-o", "prog", "Main.hs")
	x, f := build(t, filepath.Join(dir, "prog"))
	names := oracle(t, f)
	// Labels are unique in a module only: key by unit.
	byLabel := map[string]BlockID{}
	linked := map[string]bool{} // from 9.6 on a module that is inlined entirely is not
	for i := 1; i <= x.Blocks(); i++ {
		b := x.Block(BlockID(i))
		unit := x.Unit(x.Proc(b.Proc).Unit).Name
		label := strings.TrimSuffix(names[i-1].Name, "_info")
		for _, prefix := range []string{"_", "blk_", "block_"} { // by version
			label = strings.TrimPrefix(label, prefix)
		}
		if names[i-1].Kind == "proc" {
			label = "proc " + names[i-1].Name
		}
		byLabel[path.Clean(unit)+" "+label] = b.ID
		linked[path.Clean(unit)] = true
	}
	blocks, checked, missing := 0, 0, 0
	dumps, _ := filepath.Glob(filepath.Join(dir, "*.dump-debug"))
	for _, dump := range dumps {
		text, err := os.ReadFile(dump)
		if err != nil {
			t.Fatal(err)
		}
		unit := strings.TrimSuffix(filepath.Base(dump), ".dump-debug") + ".hs"
		if !linked[unit] {
			continue
		}
		all := parseDump(t, string(text))
		find := func(d dumped) BlockID { return byLabel[unit+" "+d.label] }
		for _, d := range all {
			if d.proc || d.removed {
				continue
			}
			blocks++
			id := find(d)
			if id == NoBlock {
				missing++
				continue
			}
			if d.parent >= 0 && !all[d.parent].proc && !all[d.parent].removed {
				if got := x.Block(id).Parent; got != find(all[d.parent]) {
					t.Errorf("%s: block %s lies in block %d; GHC has it in %s", unit, d.label, got, all[d.parent].label)
				}
			}
			if d.tick == "" {
				continue
			}
			checked++
			var set []string
			for _, c := range x.Causes(nil, id) {
				set = append(set, spanText(x, c.Span))
			}
			if !contains(set, d.tick) {
				t.Errorf("%s: block %s has causes %v; GHC's best note is %s", unit, d.label, set, d.tick)
			}
		}
	}
	t.Logf("%s: %d blocks, %d with a note compared, %d without a label in DWARF", name, blocks, checked, missing)
	if checked < 30 || missing > blocks/20 {
		t.Errorf("%s: compared %d of %d blocks, %d were not found", name, checked, blocks, missing)
	}
}

func contains(set []string, s string) bool {
	for _, t := range set {
		if t == s {
			return true
		}
	}
	return false
}

// TestLookup checks the flat index against a search of all ranges.
func TestLookup(t *testing.T) {
	x, _ := build(t, testprog.Build(t, "maps", testprog.Options{}))
	live := 0
	for i := 1; i <= x.Blocks(); i++ {
		b := x.Block(BlockID(i))
		if !b.Live {
			continue
		}
		live++
		for _, addr := range []uint64{b.Lo, b.Hi - 1, b.Hi, (b.Lo + b.Hi) / 2} {
			want, deepest := NoBlock, -1
			for j := 1; j <= x.Blocks(); j++ {
				c := x.Block(BlockID(j))
				if c.Live && addr >= c.Lo && addr < c.Hi && int(x.blocks[j].depth) > deepest {
					want, deepest = c.ID, int(x.blocks[j].depth)
				}
			}
			if got := x.Lookup(addr); got != want {
				t.Fatalf("Lookup(%#x) = %d, want %d", addr, got, want)
			}
		}
	}
	if live < 50 {
		t.Errorf("only %d live blocks", live)
	}
	if x.Lookup(0) != NoBlock || x.Lookup(^uint64(0)) != NoBlock {
		t.Error("addresses outside resolve")
	}
}

// TestDropped checks that code the linker dropped is not found, and that its
// notes still are: fusion's Stream module is inlined entirely or in part.
func TestDropped(t *testing.T) {
	x, f := build(t, testprog.Build(t, "fusion", testprog.Options{}))
	for i := 1; i <= x.Blocks(); i++ {
		b := x.Block(BlockID(i))
		if b.Live && !executable(f)(b.Lo) {
			t.Errorf("block %d at %#x is live outside of code", i, b.Lo)
		}
	}
	both := 0
	for i := 1; i <= x.Blocks(); i++ {
		files := map[string]bool{}
		if b := x.Block(BlockID(i)); b.Live {
			for _, c := range x.Causes(nil, b.ID) {
				files[x.File(x.Span(c.Span).File)] = true
			}
		}
		if len(files) > 1 {
			both++
		}
	}
	if both == 0 {
		t.Error("no block has causes in both modules of a fused program")
	}
}

// An index that is over its memory budget is given as far as it was built, and says so.
func TestMemoryBudget(t *testing.T) {
	s, _ := load(t, testprog.Build(t, "maps", testprog.Options{}))
	x, err := Build(context.Background(), s, Options{Memory: 4096})
	if x == nil || (err == nil && len(x.Problems) == 0) {
		t.Fatalf("4 KB were enough: %v", err)
	}
}

// A cause counts where it is nearest, and a cycle of tick parents, as crafted files have
// it, ends.
func TestCauses(t *testing.T) {
	// Two procedures that name each other as tick parents, as only a crafted
	// file has it; a note that recurs; a block without notes.
	x := &Index{
		procs:  []proc{{}, {root: 1, tickParent: 4}, {root: 3, tickParent: 2}},
		blocks: []block{{}, {proc: 1, note: 1}, {proc: 1, parent: 1, note: 2}, {proc: 2}, {proc: 2, parent: 3, note: 4}},
		notes:  []note{{}, {span: 10}, {span: 11, next: 3}, {span: 10}, {span: 12}},
		spans:  make([]Span, 13),
	}
	got := x.Causes(nil, 4)
	want := []Cause{{12, 0}, {11, 2}, {10, 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("causes of block 4 (-want +got):\n%s", diff)
	}
	if got := x.Enclosing(nil, 2); len(got) == 0 || got[0] != 2 {
		t.Errorf("enclosing procedures of block 2: %v", got)
	}
}
