package ui

import "strings"

// unicodeLocale reports whether the terminal may be sent more than ASCII. A locale
// that names another character set than UTF-8 says that it may not, and so does
// LC_ALL=C; a locale that was never set, as in containers, says nothing.
func unicodeLocale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // locale(7): the first that is set holds
		v := getenv(name)
		if v == "" {
			continue
		}
		if v == "C" || v == "POSIX" {
			return name != "LC_ALL"
		}
		_, set, ok := strings.Cut(v, ".")
		set, _, _ = strings.Cut(set, "@")
		return !ok || strings.EqualFold(strings.ReplaceAll(set, "-", ""), "utf8")
	}
	return true
}
