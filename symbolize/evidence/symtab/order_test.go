package symtab

import (
	"math"
	"testing"

	"ccagent/internal/elftest"
	"ccagent/symbolize/elffile"

	"github.com/google/go-cmp/cmp"
)

// fewSymbols are symbols that know their files.
type fewSymbols struct {
	elftest.Symbols
	files []elffile.FileSymbol
}

func (s fewSymbols) Files() []elffile.FileSymbol { return s.files }

// An order comes back as it was, for the same symbols only.
func TestKnownOrder(t *testing.T) {
	f, table := code(global("outer", 0x1000, 0x100), global("inner", 0x1010, 0x10), global("none", 0x2fff, 0), global("last", 0x2000, 0x10))
	files := []elffile.FileSymbol{{Index: 0, Start: 7}, {Index: 3, Start: 1}}
	table = NewTable(f, fewSymbols{table.all.(elftest.Symbols), files}, true)
	parts := table.Found()
	k := KnownOrder(parts, 4)
	if k == nil {
		t.Fatal("it is malformed")
	}
	again := k.Table(table.all)
	again.Recall(parts)
	if again.Found() != nil {
		t.Error("something is new")
	}
	if !again.holdsRTS || !cmp.Equal(files, k.Files()) || !cmp.Equal(table.reach, again.reach) {
		t.Errorf("%+v, files %v", again, k.Files())
	}
	for addr := uint64(0xfff); addr < 0x3001; addr++ {
		want, wantNext := table.find(addr)
		if got, next := again.find(addr); got != want || next != wantNext {
			t.Fatalf("%#x is in %d, before %d; %d, %d expected", addr, got, next, want, wantNext)
		}
		for _, i := range []int{want, wantNext} {
			if !cmp.Equal(table.symbol(i), again.symbol(i)) {
				t.Fatalf("symbol %d is %+v, not %+v", i, again.symbol(i), table.symbol(i))
			}
		}
	}
	if k.Table(elftest.Symbols(make([]elffile.Symbol, 5))) != nil {
		t.Error("other symbols are taken for the same")
	}
	if KnownOrder(parts, 3) != nil || KnownOrder(nil, 4) != nil {
		t.Error("an order of more symbols than there may be, or of none")
	}
	for n := range parts[partOrder] {
		if k := KnownOrder(map[string][]byte{partOrder: parts[partOrder][:n]}, 4); k != nil && len(k.order) == len(table.order) {
			t.Errorf("%d bytes of it are a whole one", n)
		}
	}
}

// A set of hashes has the names that it was made of, and says so of no other one of those that are tried.
func TestHashes(t *testing.T) {
	symbols := elftest.Symbols{{Name: "a_info"}, {Name: "b_info"}, {Name: "a_info"}, {Name: "b_closure"}}
	_, table := code(symbols...)
	table.Defines("a_info")
	again := &Table{all: elftest.Symbols{}}
	again.Recall(table.Found())
	for name, want := range map[string]bool{"a_info": true, "b_info": true, "b_closure": true, "a_closure": false, "": false, "a_inf": false} {
		if got := again.Defines(name); got != want {
			t.Errorf("%q is defined: %v", name, got)
		}
	}
	if decodeHashes(make([]byte, hashBytes+1)) != nil {
		t.Error("a part of a hash is taken for one")
	}
}

// Whatever bytes were kept, a table has its symbols in order and within those that there are.
func FuzzKnownOrder(f *testing.F) {
	_, table := code(global("outer", 0x1000, 0x100), global("inner", 0x1010, 0x10), global("last", 0x2000, 0x10))
	all := fewSymbols{table.all.(elftest.Symbols), []elffile.FileSymbol{{Index: 1, Start: 3}}}
	f.Add(table.encodeOrder(all.files), []byte(hashesOf([]string{"outer", "last"})))
	f.Add([]byte{3, 0, 0, 0x80, 0x20, 1, 4}, []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, order, defined []byte) {
		k := KnownOrder(map[string][]byte{partOrder: order}, 64)
		if k == nil {
			return
		}
		last := -1
		for _, file := range k.Files() {
			if file.Index < last || file.Index < 0 || uint64(file.Index) >= k.symbols {
				t.Fatalf("files %v of %d symbols", k.Files(), k.symbols)
			}
			last = file.Index
		}
		again := k.Table(all)
		if again == nil {
			return
		}
		again.Recall(map[string][]byte{partDefined: defined})
		again.Defines("outer")
		at, reach := uint64(0), uint64(0)
		for i, e := range again.order {
			if e.addr < at || i > 0 && e.addr == at || e.addr+e.size < e.addr || int(e.index) >= all.Len() || again.reach[i] < max(reach, e.addr+e.size) {
				t.Fatalf("symbol %d of %+v", i, again.order)
			}
			at, reach = e.addr, again.reach[i]
			again.Find(e.addr)
		}
		again.Find(0)
		again.Find(math.MaxUint64)
	})
}
