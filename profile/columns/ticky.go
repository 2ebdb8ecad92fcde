package columns

import (
	"cmp"
	"slices"
	"strings"
)

// Source derives from a counter's name the module, the binding (without the prefixes and
// suffixes that GHC's passes add to a source name), and the kind of closure ("fun",
// "thk", "LNE", "con"). A part that the name does not contain is empty.
func (c *TickyCounter) Source() (module, binding, kind string) { return parseTickyName(c.Name) }

// TickyByEntries returns the log's ticky counters, most entries first.
func (p *Log) TickyByEntries() []TickyCounter {
	out := slices.Clone(p.Ticky)
	slices.SortFunc(out, func(a, b TickyCounter) int {
		return cmp.Or(cmp.Compare(b.Entries, a.Entries), cmp.Compare(b.Allocs, a.Allocs), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// parseTickyName parses names such as "Main.$wj{v r3IK} (fun)", "$snth{v r3IW} (Main)
// (fun)" and "sat_s4Xy{v} (Main) (thk) in r3IT".
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
		// The module ends at the last dot that is followed by no further module
		// component, because operators contain dots too.
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

// sourceName removes the prefixes ($w, $s, $l) and suffixes (_g3Pa) that GHC's passes add
// to a source name. Of main_$s$wgo it keeps the last part.
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

// isUnique reports whether a string is a GHC unique: a letter for the supply, followed by
// digits of base 62.
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
