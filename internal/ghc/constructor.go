package ghc

import "strings"

// SplitConstructor splits the description of a constructor, "base-4.15:GHC.Base.:|", into its
// package, its module, and its name with the module.
func SplitConstructor(s string) (pkg, module, name string) {
	pkg, rest, ok := strings.Cut(s, ":")
	if !ok {
		return "", "", s
	}
	at := 0
	for {
		dot := strings.IndexByte(rest[at:], '.')
		if dot <= 0 || at+dot+1 == len(rest) || !isModule(rest[at:at+dot]) {
			break
		}
		at += dot + 1
	}
	return pkg, strings.TrimSuffix(rest[:at], "."), rest
}

// isModule reports whether s can be a part of a module's name.
func isModule(s string) bool {
	for i, c := range s {
		upper := c >= 'A' && c <= 'Z' || c >= 0x80
		if i == 0 && !upper || !upper && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_' && c != '\'' {
			return false
		}
	}
	return s != ""
}
