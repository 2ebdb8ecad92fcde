package search

import (
	"context"
	"debug/elf"
	"errors"
	"slices"
	"strings"

	"ccagent/symbolize/coderefs"
	"ccagent/symbolize/elffile"
)

// Limits of what is read of a program's file, and probed.
const (
	maxSymbolBytes  = 1 << 30
	maxConstructors = 1 << 14
	maxPlaces       = 1 << 15
)

// place is an instruction that makes values of a constructor: module addresses.
type place struct {
	addr uint64
	info uint64 // the constructor's info table
	// alone is set in functions that do nothing else: the constructor's own, and methods.
	alone bool
}

// places are those of a file.
type places struct {
	at []place
	// unknown counts references to those info tables that are not known to make values.
	unknown int
}

var (
	errMachine = errors.New("places that make values are known in x86-64 code alone")
	errNone    = errors.New("the program has no constructor of KiCS2's that stands for a choice, guard or failure, or no symbol table")
	errDaemon  = errors.New("the daemon does not count what programs make; ccagent attach does")
	errTooMany = errors.New("the program has too many places that make choices, guards and failures")
)

// added are what begins the names of the constructors that KiCS2 adds to each type, as GHC encodes them in symbols; see profile/curry.
var added = [...]string{"Choicezu", "Choiceszu", "Failzu", "Guardzu"}

// constructor reports whether a symbol is the info table of such a constructor: that of "Curry_Prelude.Choice_C_Bool" is
// "CurryzuPrelude_ChoicezuCzuBool_con_info", behind the package's name and "_" if it is not the main one.
func constructor(symbol string) bool {
	name, ok := strings.CutSuffix(symbol, "_con_info")
	if !ok {
		return false
	}
	name = name[strings.LastIndexByte(name, '_')+1:]
	for _, prefix := range added {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
			return true
		}
	}
	return false
}

// makesAlone reports whether a symbol is the code of a constructor's own function, "CurryzuPrelude_ChoicezuCzuBool_info", or of a method that makes
// its values, "CurryzuPrelude_zdfNonDetCzuBoolzuzdcchoiceCons_info".
func makesAlone(symbol string) bool {
	name, ok := strings.CutSuffix(symbol, "_info")
	if !ok {
		return false
	}
	name = name[strings.LastIndexByte(name, '_')+1:]
	if strings.HasPrefix(name, "zdfNonDet") {
		for _, method := range [...]string{"choiceCons", "choicesCons", "failCons", "guardCons"} {
			if strings.HasSuffix(name, "zuzdc"+method) {
				return true
			}
		}
	}
	return !strings.HasSuffix(symbol, "_con_info") && constructor(name+"_con_info")
}

// longestAlone is the most bytes of such a function up to the instruction that makes the value: a heap check comes before it.
const longestAlone = 48

// findPlaces finds all places in a program's file.
func findPlaces(ctx context.Context, f *elffile.File) (*places, error) {
	if f.Machine != elf.EM_X86_64 {
		return nil, errMachine
	}
	var infos []uint64
	var alone []uint64
	curry := false // a program of another kind may have such names
	if err := f.EachSymbol(maxSymbolBytes, func(s *elffile.Symbol) {
		curry = curry || strings.HasPrefix(s.Name, "Curryzu") || strings.Contains(s.Name, "_Curryzu")
		if len(infos) < maxConstructors && constructor(s.Name) {
			infos = append(infos, s.Addr)
		}
		if len(alone) < 4*maxConstructors && makesAlone(s.Name) {
			alone = append(alone, s.Addr)
		}
	}); err != nil {
		return nil, err
	}
	if len(infos) == 0 || !curry {
		return nil, errNone
	}
	refs, err := coderefs.Within(ctx, f, 0, ^uint64(0), infos)
	if err != nil {
		return nil, err
	}
	if len(refs) > maxPlaces {
		return nil, errTooMany
	}
	out := &places{}
	slices.Sort(alone)
	seen := map[uint64]bool{}
	for _, r := range refs {
		before := f.ReadAddr(r.From-longest, longest)
		back := begins(before)
		if back == 0 {
			out.unknown++
			continue
		}
		if at := r.From - uint64(back); !seen[at] {
			seen[at] = true
			i, exact := slices.BinarySearch(alone, at)
			out.at = append(out.at, place{at, infos[r.Target], exact || i > 0 && at-alone[i-1] < longestAlone})
		}
	}
	if len(out.at) == 0 {
		return nil, errNone
	}
	return out, nil
}

// longest is the most bytes that such an instruction has before its operand.
const longest = 8

// begins returns how many bytes before its operand the instruction begins that takes the info table's address to write it into the heap, 0 if
// it is not known to be one. b is what is before the operand.
//
// Position-dependent code has the address in mov $info, off(%r12), where off has no, one or four bytes. Other code has it in
// lea info(%rip), %reg before the mov: GHC's code generator makes one for each (GHC/CmmToAsm/X86/CodeGen.hs, assignMem_IntCode).
func begins(b []byte) int {
	at := func(back int, is ...byte) bool {
		return len(b) >= back && string(b[len(b)-back:len(b)-back+len(is)]) == string(is)
	}
	const ofR12 = 0x24 // the SIB byte
	switch n := len(b); {
	case at(4, 0x49, 0xc7, 0x04, ofR12):
		return 4
	case at(5, 0x49, 0xc7, 0x44, ofR12):
		return 5
	case at(8, 0x49, 0xc7, 0x84, ofR12):
		return 8
	case n >= 3 && b[n-3]&0xfb == 0x48 && b[n-2] == 0x8d && b[n-1]&0xc7 == 0x05:
		return 3
	}
	return 0
}
