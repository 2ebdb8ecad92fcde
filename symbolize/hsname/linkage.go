package hsname

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"ccagent/internal/ghc"
)

// Kind says what a linkage name stands for, by its suffix.
type Kind uint8

const (
	KindOther    Kind = iota
	KindInfo          // info table, and code when it is entered: functions, thunks, continuations
	KindConInfo       // info table of a data constructor
	KindEntry         // code, where tables are not next to code
	KindSlow          // a function's slow entry: arguments on the stack
	KindClosure       // static closure
	KindClosures      // table of an enumeration's closures
	KindBytes         // string literal
	KindTable         // static reference table, bitmap and other data
)

// Name is a linkage name taken apart.
type Name struct {
	Unit    string // as in the name, decoded: "containers-0.6.4.1"; empty for the main unit and internal names
	Package string // Unit without the hash of its build: "base"; "main" for the program's own modules
	Module  string // "GHC.Base"; empty for internal names
	Name    string // "++", "$wheavy"; for internal names GHC's unique, "s1Fc"
	Kind    Kind
	// Internal is set for names that mean nothing outside their module:
	// "s1Fc_info", ".Lc1X_info".
	Internal bool
}

// Code reports whether the name can stand for code.
func (k Kind) Code() bool {
	return k == KindInfo || k == KindConInfo || k == KindEntry || k == KindSlow
}

var suffixes = []struct {
	text string
	kind Kind
}{
	{"_con_info", KindConInfo}, {"_con_entry", KindConInfo}, {"_static_info", KindConInfo},
	{"_info", KindInfo}, {"_entry", KindEntry}, {"_ret", KindEntry}, {"_slow", KindSlow}, {"_fast", KindEntry},
	{"_closure_tbl", KindClosures}, {"_closure", KindClosure}, {"_bytes", KindBytes}, {"_str", KindBytes},
	{"_srt", KindTable}, {"_btm", KindTable}, {"_ccs", KindTable}, {"_cc", KindTable}, {"_itbl", KindTable},
}

// internalName matches GHC's uniques in names: a tag letter and base-62 digits.
var internalName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:block_)?([a-zA-Z][0-9a-zA-Z]{1,12})$`) })

// exposedName matches an exposed internal name behind its underscore: at least
// module, name, unique and suffix.
var exposedName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[^_]+_){2,}[a-zA-Z][0-9a-zA-Z]{1,12}_(?:info|entry|closure|con_info|slow|srt|bytes|str)$`)
})

// Parse takes a linkage name apart. It reports false for names that GHC does
// not make: those of C functions and of the run-time system.
func Parse(symbol string) (Name, bool) {
	body, local := strings.CutPrefix(symbol, ".L")
	// From GHC 9.2 on, -g exposes internal names: "_Main_sat_s2VX_entry".
	if rest, ok := strings.CutPrefix(body, "_"); ok {
		if !exposedName().MatchString(rest) {
			return Name{}, false
		}
		body = rest
	}
	var n Name
	found := false
	for _, s := range suffixes {
		if rest, ok := strings.CutSuffix(body, s.text); ok && rest != "" {
			body, n.Kind, found = rest, s.kind, true
			break
		}
	}
	if !found || strings.HasPrefix(body, ghc.CmmPrefix) {
		return Name{}, false
	}
	if m := internalName().FindStringSubmatch(body); m != nil && (local || hasDigit(m[1]) || strings.HasPrefix(body, "block_")) {
		n.Name, n.Internal = m[1], true
		return n, true
	}
	parts := strings.Split(body, "_")
	switch {
	case len(parts) >= 2 && moduleName(parts[0], &n.Module):
		n.Package = "main"
		parts = parts[1:]
	case len(parts) >= 3 && moduleName(parts[1], &n.Module):
		unit, ok := Decode(parts[0])
		if !ok || unit == "" {
			return Name{}, false
		}
		n.Unit, n.Package = unit, ghc.PackageOf(unit)
		parts = parts[2:]
	default:
		return Name{}, false
	}
	// One part is the name; more come with usage-site constructor tables
	// ("Just_Main_3_con_info") and exposed internal names ("go_s1Fc_info").
	name, ok := Decode(parts[0])
	if !ok || name == "" {
		return Name{}, false
	}
	n.Name = name
	return n, true
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// moduleName decodes a module's name into out: dot-separated identifiers that
// begin with an upper-case letter, or GHC's ":Main".
func moduleName(s string, out *string) bool {
	m, ok := Decode(s)
	if !ok || m == "" {
		return false
	}
	for _, part := range strings.Split(strings.TrimPrefix(m, ":"), ".") {
		r, _ := utf8.DecodeRuneInString(part)
		if !unicode.IsUpper(r) {
			return false
		}
		for _, r := range part {
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '\'' {
				return false
			}
		}
	}
	*out = m
	return true
}

// Linkage is the linkage name of a binding, without its suffix: the opposite of Parse.
func Linkage(pkg, module, name string) string {
	s := Encode(module) + "_" + Encode(name)
	if pkg != "main" && pkg != "" {
		s = Encode(pkg) + "_" + s
	}
	return s
}
