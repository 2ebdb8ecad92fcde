package symtab

import (
	_ "embed"
	"strings"
	"sync"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
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

// classify sorts every symbol of a module by whose code it is. The rules, for
// code that is not Haskell's by its name:
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
func classify(symbols []Symbol, holdsRTS bool) {
	known := knownRTS()
	for i := range symbols {
		s := &symbols[i]
		name, ok := hsname.Parse(s.Name)
		switch {
		case strings.HasPrefix(s.Name, ghc.CmmPrefix):
			s.Category = eventlog.CategorySTG
		case ok && name.Kind.Code():
			s.Category = eventlog.CategoryHaskell
			s.Haskell = name
		case !holdsRTS:
			s.Category = eventlog.CategoryForeign
		default:
			s.Category = eventlog.CategoryUnresolved
			if s.File != "" && !s.hidden() {
				if c, ok := known.files[s.File]; ok {
					s.Category = c
				}
			} else if c, ok := known.extern[plainName(s.Name)]; ok {
				s.Category = c
			}
		}
	}
	if !holdsRTS {
		return
	}
	ofRTS := func(c eventlog.Category) bool {
		return c == eventlog.CategoryRTS || c == eventlog.CategoryGC || c == eventlog.CategorySTG
	}
	// neighbour gives the nearest symbol whose category is settled.
	previous := make([]eventlog.Category, len(symbols))
	last := eventlog.CategoryUnresolved
	for i := range symbols {
		previous[i] = last
		if c := symbols[i].Category; c != eventlog.CategoryUnresolved {
			last = c
		}
	}
	next := eventlog.CategoryUnresolved
	for i := len(symbols) - 1; i >= 0; i-- {
		s := &symbols[i]
		if s.Category != eventlog.CategoryUnresolved {
			next = s.Category
			continue
		}
		before, after := ofRTS(previous[i]), ofRTS(next)
		local, isLocal := known.local[plainName(s.Name)]
		switch {
		case isLocal && s.local() && (before || after):
			s.Category = local
		case before && after:
			s.Category = eventlog.CategoryRTS
			for _, p := range gcPrefixes {
				if strings.HasPrefix(s.Name, p) {
					s.Category = eventlog.CategoryGC
				}
			}
		}
	}
	for i := range symbols {
		if symbols[i].Category == eventlog.CategoryUnresolved {
			symbols[i].Category = eventlog.CategoryForeign
		}
	}
}
