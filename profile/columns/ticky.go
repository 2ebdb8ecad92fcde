package columns

import (
	"cmp"
	"slices"
	"strings"
)

// Source reads from a counter's name the module and the binding, without what GHC's
// passes put before and after a source name, and the kind of closure ("fun", "thk",
// "LNE", "con"). What the name does not tell is empty.
func (c *TickyCounter) Source() (module, binding, kind string) { return parseTickyName(c.Name) }

// TickyByEntries are the log's ticky counters, those entered most often first.
func (p *Log) TickyByEntries() []TickyCounter {
	out := slices.Clone(p.Ticky)
	slices.SortFunc(out, func(a, b TickyCounter) int {
		return cmp.Or(cmp.Compare(b.Entries, a.Entries), cmp.Compare(b.Allocs, a.Allocs), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// parseTickyName takes apart names such as "Main.$wj{v r3IK} (fun)",
// "$snth{v r3IW} (Main) (fun)" and "sat_s4Xy{v} (Main) (thk) in r3IT".
func parseTickyName(name string) (module, binding, kind string) {
	head, rest := name, ""
	if i := strings.IndexAny(name, "{ "); i > 0 {
		head, rest = name[:i], name[i:]
	}
	rest, _, _ = strings.Cut(rest, " in ")
	for part := range strings.SplitSeq(rest, "(") {
		word, _, closed := strings.Cut(part, ")")
		word, _, _ = strings.Cut(word, ",")
		switch {
		case !closed:
		case word == "fun", word == "thk", word == "LNE", strings.HasPrefix(word, "con"):
			kind, _, _ = strings.Cut(word, ":")
		case module == "" && len(word) > 0 && word[0] >= 'A' && word[0] <= 'Z':
			module = word
		}
	}
	if module == "" {
		// The module's own part ends at the last dot before what is no module's
		// name: operators have dots too.
		for {
			i := strings.IndexByte(head, '.')
			if i <= 0 || i == len(head)-1 || !isModulePart(head[:i]) {
				break
			}
			if module != "" {
				module += "."
			}
			module += strings.TrimPrefix(head[:i], ":")
			head = head[i+1:]
		}
	}
	return module, sourceName(head), kind
}

func isModulePart(s string) bool {
	s = strings.TrimPrefix(s, ":")
	return s != "" && s[0] >= 'A' && s[0] <= 'Z' && !strings.ContainsAny(s, "$ (")
}

// sourceName takes away what GHC's passes put before a name ($w, $s, $l) and after
// it (_g3Pa); of main_$s$wgo what stands last is the name.
func sourceName(s string) string {
	if i := strings.LastIndex(s, "_$"); i > 0 {
		s = s[i+1:]
	}
	for {
		switch {
		case len(s) > 2 && (strings.HasPrefix(s, "$w") || strings.HasPrefix(s, "$s") || strings.HasPrefix(s, "$l") || strings.HasPrefix(s, "$j")):
			s = s[2:]
			continue
		}
		break
	}
	if i := strings.LastIndexByte(s, '_'); i > 0 && len(s)-i > 2 && isUnique(s[i+1:]) {
		s = s[:i]
	}
	return s
}

// isUnique tells a unique of GHC's: a letter that names the supply, and digits of
// base 62.
func isUnique(s string) bool {
	digit := false
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			digit = true
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		default:
			return false
		}
	}
	return digit && s[0] >= 'a' && s[0] <= 'z'
}
