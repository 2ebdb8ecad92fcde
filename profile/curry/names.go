package curry

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Version says which of a function's versions code is.
type Version uint8

const (
	Neither          Version = iota // no function that KiCS2 has versions of
	Deterministic                   // d_
	NonDeterministic                // nd_: it takes a supply of identifiers for choices
)

// NonDeterministicMark follows the names of functions' non-deterministic versions.
const NonDeterministicMark = " (nd)"

// Module gives the Curry module of a generated Haskell module; false for other modules.
func Module(haskell string) (string, bool) {
	last := strings.LastIndexByte(haskell, '.') + 1
	name, ok := strings.CutPrefix(haskell[last:], "Curry_")
	name = strings.TrimPrefix(name, "Trace_") // compiled to trace failures
	if !ok || name == "" {
		return haskell, false
	}
	return haskell[:last] + name, true
}

// Function decodes the name of a generated function, with what follows it: "nd_C_perm.go" is
// "perm.go", NonDeterministic, and the code of the constructor "Choice_C_Bool" is "Bool (choice)". Other
// names come back as they are.
func Function(name string) (string, Version) {
	rest := strings.TrimPrefix(strings.TrimPrefix(name, "external_"), "global_")
	v := Neither
	if after, ok := strings.CutPrefix(rest, "nd_"); ok {
		rest, v = after, NonDeterministic
	} else if after, ok := strings.CutPrefix(rest, "d_"); ok {
		rest, v = after, Deterministic
	}
	own, local := cut(rest)
	if v == Neither { // a constructor's code, or code that KiCS2 has not made
		if decoded, role, ok := Constructor(own); ok && role != Value {
			return decoded + " (" + role.String() + ")" + local, v
		}
		return name, v
	}
	decoded, ok := identifier(own)
	if !ok {
		return name, Neither
	}
	return decoded + local, v
}

// cut splits a path below a binding, "C_f.go" or "C_f (instance …)", after the binding.
func cut(path string) (own, local string) {
	if i := strings.IndexAny(path, ". "); i >= 0 {
		return path[:i], path[i:]
	}
	return path, ""
}

// Role is what a constructor that KiCS2 adds to a type stands for.
type Role uint8

const (
	Value   Role = iota // none that KiCS2 adds: a constructor of the program
	Choice              // one of two values
	Choices             // one of several values: a logical variable, or what it was narrowed to
	Failure
	Guard // a value with constraints
)

var roles = [...]struct{ prefix, words string }{
	Choice: {"Choice_", "choice"}, Choices: {"Choices_", "variable or choice of several"}, Failure: {"Fail_", "failure"}, Guard: {"Guard_", "guard"},
}

func (r Role) String() string { return roles[r].words }

// Constructor decodes the name of a generated constructor; of one that KiCS2 adds to a type, the
// type's name and what it stands for. It reports false for other names.
func Constructor(name string) (string, Role, bool) {
	for r := Choice; r <= Guard; r++ {
		if rest, ok := strings.CutPrefix(name, roles[r].prefix); ok {
			of, known := identifier(rest)
			return of, r, known || rest != "" && rest != name // types of the run-time system have no prefix: Choice_Nat
		}
	}
	decoded, ok := identifier(name)
	return decoded, Value, ok
}

// identifier decodes what Names.genRename makes of an identifier.
func identifier(s string) (string, bool) {
	s = strings.TrimPrefix(s, "HO_")
	switch s {
	case "OP_List":
		return "[]", true
	case "OP_Cons":
		return ":", true
	case "OP_Unit":
		return "()", true
	}
	if n, ok := strings.CutPrefix(s, "OP_Tuple"); ok {
		if k, err := strconv.Atoi(n); err == nil && k > 1 && k < 100 {
			return "(" + strings.Repeat(",", k-1) + ")", true
		}
	}
	if rest, ok := strings.CutPrefix(s, "C_"); ok && rest != "" {
		return rest, true
	}
	if rest, ok := strings.CutPrefix(s, "OP_"); ok && rest != "" {
		return operator(rest), true
	}
	return s, false
}

var spelt = map[string]byte{
	"uscore": '_', "tilde": '~', "bang": '!', "at": '@', "hash": '#', "dollar": '$', "percent": '%', "caret": '^', "amp": '&',
	"star": '*', "plus": '+', "minus": '-', "eq": '=', "lt": '<', "gt": '>', "qmark": '?', "dot": '.', "slash": '/', "bar": '|',
	"backslash": '\\', "colon": ':', "lparen": '(', "rparen": ')', "lbracket": '[', "rbracket": ']', "comma": ',', "tick": '\'',
	// Versions up to 0.3:
	"underscore": '_', "ampersand": '&', "oparen": '(', "cparen": ')', "obracket": '[', "cbracket": ']',
}

// operator decodes characters that are spelt out. Versions that left an underscore as it is have two
// empty parts for it; lifted cases begin with one: "_case_1" is d_OP__case_1, in old versions d_OP__casePT_1.
func operator(s string) string {
	if strings.HasPrefix(s, "_case_") || strings.HasPrefix(s, "_casePT_") {
		return s
	}
	var b strings.Builder
	parts := strings.Split(s, "_")
	for i := 0; i < len(parts); i++ {
		switch c, ok := spelt[parts[i]]; {
		case ok:
			b.WriteByte(c)
		case parts[i] == "" && i+1 < len(parts) && parts[i+1] == "":
			b.WriteByte('_')
			i++
		default:
			b.WriteString(parts[i])
		}
	}
	if b.Len() == 0 || !utf8.ValidString(b.String()) {
		return s
	}
	return b.String()
}
