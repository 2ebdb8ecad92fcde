package curry

import "strings"

// modules are those of KiCS2's run-time system: runtime/*.hs.
var modules = map[string]string{
	"Basics": "", "Types": "", "PrimTypes": "", "KiCS2Debug": "", "CurryException": "", "SafeExec": "",
	"ID": "", "IDSupply": supply, "Giant": supply, "ConstStore": constraints, "Solver": constraints,
	"FailInfo": failures, "FailTrace": failures,
	"Search": strategies, "MonadSearch": strategies, "MonadList": strategies, "Strategies": strategies,
}

// tables are modules of the library containers. In a program of KiCS2 no code but the run-time system's has tables of that library: decisions and the
// keys of identifiers (IDSupply), constraints (ConstStore), and what searches have stored (Search).
var tables = []string{"Data.Map", "Utils.Containers.Internal"}

// The parts of search.
const (
	supply      = "supply of identifiers"
	decisions   = "store of decisions"
	stored      = "tables of decisions, identifiers and constraints"
	choices     = "choices: made, and moved out of arguments"
	constraints = "guards, constraints and unification"
	failures    = "failures"
	generators  = "logical variables made"
	normal      = "normal forms"
	strategies  = "search strategy"
	inspected   = "looking whether values are choices"
	others      = "other work of search"
)

// functions are the parts that functions and methods of those modules belong to, by the beginnings
// of their names.
var functions = []struct {
	part   string
	starts []string
}{
	{decisions, []string{"lookupDecision", "lookupID", "setDecision", "setUnsetDecision", "resetFreeVar", "propagateBind", "checkPropagation", "traceLookup", "traceDecision", "getDecision", "unsetDecision"}},
	{supply, []string{"thisID", "freeID", "leftID", "rightID", "nextNIDs", "nextSupplies", "supply", "leftSupply", "rightSupply", "initSupply", "unique", "getKey", "getUnique", "narrowID"}},
	{choices, []string{"narrow", "choice", "choiceCons", "choicesCons"}},
	{constraints, []string{"guardCons", "bind", "lazyBind", "lookupCs", "lookupWithGlobalCs", "addCs", "combineCs", "=:=", "=.=", "=:<=", "=.<=", "unify", "lazyMatch", "lazyTry", "constrain", "acceptCs", "&", "solve", "unification"}},
	{failures, []string{"failCons", "failCheck", "defFailInfo", "checkFail"}},
	{generators, []string{"generate"}},
	{normal, []string{"$!!", "$##", "$!<", "nf", "gnf", "searchNF", "d_dollar_", "nd_dollar_"}},
	{inspected, []string{"try", "match"}},
}

// Classes of the run-time system, whose instances KiCS2 generates for each type.
var classes = []string{"NonDet", "Generable", "NormalForm", "Unifiable", "Coverable"}

// Runtime reports whether a Haskell module has the name of one of the run-time system's.
func Runtime(module string) bool {
	_, ok := modules[module]
	return ok
}

// Strategy reports whether a Haskell module has the name of one that has search strategies.
func Strategy(module string) bool { return modules[module] == strategies }

// Searches reports whether a binding is code of the run-time system: of one of its modules, or of an
// instance of one of its classes, which is named "method (instance Class Type)", or of a library that it alone uses. What PrimTypes has of Curry's own functions,
// arithmetic of numbers, is none.
func Searches(module, name string) bool {
	if table(module) {
		return true
	}
	if Runtime(module) {
		_, version := Function(name)
		return module != "PrimTypes" || version == Neither
	}
	_, instance, ok := strings.Cut(name, " (instance ")
	if !ok {
		instance, ok = strings.CutPrefix(name, "(instance ")
	}
	if ok {
		for _, c := range classes {
			if strings.HasPrefix(instance, c) {
				return true
			}
		}
	}
	return false
}

// table reports whether a module is one of tables, or within one.
func table(module string) bool {
	for _, t := range tables {
		if rest, ok := strings.CutPrefix(module, t); ok && (rest == "" || rest[0] == '.') {
			return true
		}
	}
	return false
}

// Part says what part of search a binding of the run-time system is.
func Part(module, name string) string {
	if part := modules[module]; part != "" {
		return part
	}
	if table(module) {
		return stored
	}
	best, length := others, 0
	for _, f := range functions {
		for _, start := range f.starts {
			if len(start) > length && strings.HasPrefix(name, start) {
				best, length = f.part, len(start)
			}
		}
	}
	return best
}
