package symtab

import (
	"debug/elf"
	_ "embed"
	"strings"
	"sync"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/hsname"
)

//go:generate sh -c "go run rtsnames_gen.go /usr/lib/ghc/rts/libHSrts.a /usr/lib/ghc/rts/libHSrts_thr.a /usr/lib/ghc/rts/libHSrts_p.a /usr/lib/ghc/rts/libHSrts_thr_p.a /usr/lib/ghc/rts/libHSrts_l.a /usr/lib/ghc/rts/libHSrts_thr_l.a > rtsnames.new && mv rtsnames.new rtsnames.txt"

//go:embed rtsnames.txt
var rtsNameList string

// rtsNames knows the run-time system's C functions and source files by name.
type rtsNames struct {
	// extern are its functions that no other object file can define as well:
	// global ones, and hidden ones, which a static link makes local.
	extern map[string]eventlog.Category
	// local are its static functions. Their names are nobody's own.
	local map[string]eventlog.Category
	files map[string]eventlog.Category
}

var knownRTS = sync.OnceValue(func() *rtsNames {
	k := &rtsNames{map[string]eventlog.Category{}, map[string]eventlog.Category{}, map[string]eventlog.Category{}}
	for line := range strings.Lines(rtsNameList) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] == "#" {
			continue
		}
		category := eventlog.CategoryRTS
		if f[0] == "gc" {
			category = eventlog.CategoryGC
		}
		switch f[1] {
		case "global", "hidden":
			k.extern[f[2]] = category
		case "local":
			k.local[f[2]] = category
		case "file":
			k.files[f[2]] = category
		}
	}
	return k
})

// plainName takes off what C compilers append to the copies they make of a
// function: ".part.0", ".constprop.0", ".isra.0", ".cold".
func plainName(symbol string) string {
	if i := strings.IndexByte(symbol, '.'); i > 0 {
		return symbol[:i]
	}
	return symbol
}

// gcPrefixes begin the names of collector functions of GHC versions whose names
// are not in the list.
var gcPrefixes = []string{"evacuate", "scavenge", "nonmoving", "GarbageCollect", "markQueue", "traverseWeakPtr"}

// understand says whose code a symbol names. The rules, for code that is not Haskell's by its
// name:
//
//  1. stg_* is Cmm code of the run-time system (stg).
//  2. In a file that holds the run-time system, a function with one of its
//     external names is its own: gc if it is from rts/sm's collector, else rts.
//  3. A local function is the run-time system's if its STT_FILE says so, or, as
//     distributions strip those, if it has the name of one of its static
//     functions and a neighbour by rule 2.
//  4. A function between two of the run-time system's is its own too: a static
//     link keeps an archive's members together. (Names differ between versions.)
//  5. Everything else is foreign: libc, libgmp, the C parts of packages, the
//     user's own C.
func (t *Table) understand(i int) *Symbol {
	s := &Symbol{Symbol: t.full(i)}
	if s.Category = t.byName(i, &s.Haskell); s.Category == eventlog.CategoryUnresolved {
		s.Category = t.byNeighbours(i)
	}
	return s
}

// full gives a symbol of code with its name.
func (t *Table) full(i int) elffile.Symbol {
	s := t.all.Symbol(int(t.order[i].index))
	s.Size = t.order[i].size
	return s
}

// byName says what a symbol's own name and file say; CategoryUnresolved if that is nothing. Of
// a Haskell symbol it sets the name.
func (t *Table) byName(i int, haskell *hsname.Name) eventlog.Category {
	s, known := t.full(i), knownRTS()
	if strings.HasPrefix(s.Name, ghc.CmmPrefix) {
		return eventlog.CategorySTG
	}
	if name, ok := hsname.Parse(s.Name); ok && name.Kind.Code() {
		*haskell = name
		return eventlog.CategoryHaskell
	}
	if !t.holdsRTS {
		return eventlog.CategoryForeign
	}
	if s.File != "" && s.Vis != elf.STV_HIDDEN && s.Vis != elf.STV_INTERNAL {
		if c, ok := known.files[s.File]; ok {
			return c
		}
	} else if c, ok := known.extern[plainName(s.Name)]; ok {
		return c
	}
	return eventlog.CategoryUnresolved
}

// byNeighbours says what the nearest symbols say whose own names say something. It settles all
// symbols between these two at once, so that each is looked at once.
func (t *Table) byNeighbours(i int) eventlog.Category {
	if c, ok := t.settled[i]; ok {
		return c
	}
	// nearest goes from i in one direction.
	nearest := func(step int) (at int, c eventlog.Category) {
		var ignored hsname.Name
		for at = i + step; at >= 0 && at < len(t.order); at += step {
			if c = t.byName(at, &ignored); c != eventlog.CategoryUnresolved {
				return at, c
			}
		}
		return at, eventlog.CategoryUnresolved
	}
	ofRTS := func(c eventlog.Category) bool {
		return c == eventlog.CategoryRTS || c == eventlog.CategoryGC || c == eventlog.CategorySTG
	}
	first, previous := nearest(-1)
	end, next := nearest(1)
	before, after := ofRTS(previous), ofRTS(next)
	for j := first + 1; j < end; j++ {
		s := t.full(j)
		c := eventlog.CategoryForeign
		local, isLocal := knownRTS().local[plainName(s.Name)]
		switch {
		case isLocal && s.Bind == elf.STB_LOCAL && (before || after):
			c = local
		case before && after:
			c = eventlog.CategoryRTS
			for _, p := range gcPrefixes {
				if strings.HasPrefix(s.Name, p) {
					c = eventlog.CategoryGC
				}
			}
		}
		t.settled[j] = c
	}
	return t.settled[i]
}
