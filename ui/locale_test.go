package ui

import "testing"

func TestUnicodeLocale(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{nil, true},
		{map[string]string{"LANG": "de_DE.UTF-8"}, true},
		{map[string]string{"LANG": "C.utf8"}, true},
		{map[string]string{"LANG": "ca_ES.UTF-8@valencia"}, true},
		{map[string]string{"LANG": "de_DE.ISO-8859-1"}, false},
		{map[string]string{"LANG": "de_DE.ISO-8859-15@euro", "LC_ALL": "C.UTF-8"}, true},
		{map[string]string{"LANG": "de_DE.UTF-8", "LC_CTYPE": "ja_JP.eucJP"}, false},
		{map[string]string{"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, false},
		{map[string]string{"LANG": "C"}, true},
		{map[string]string{"LANG": "de_DE"}, true},
	} {
		if got := unicodeLocale(func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%v: %v", c.env, got)
		}
	}
}
