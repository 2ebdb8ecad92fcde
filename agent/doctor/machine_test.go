package doctor

import (
	"strings"
	"testing"
)

func TestGroups(t *testing.T) {
	for text, want := range map[string]struct {
		status Status
		detail string
	}{
		"0::/system.slice/api.service\n":                                    {OK, "version 2"},
		"2:cpu,cpuacct:/\n1:name=systemd:/system.slice/api.service\n0::/\n": {Warning, "in systemd's"},
		"2:memory:/\n1:cpu:/\n":                                             {Warning, "without systemd's hierarchy"},
	} {
		if c := groupsOf(text); c.Status != want.status || !strings.Contains(c.Detail, want.detail) || (c.Status == OK) != (c.Fix == "") {
			t.Errorf("%q: %+v", text, c)
		}
	}
}

func FuzzGroups(f *testing.F) {
	f.Add("2:memory:/\n0::/\n")
	f.Fuzz(func(t *testing.T, text string) {
		if c := groupsOf(text); c.Detail == "" || (c.Status == OK) != (c.Fix == "") {
			t.Errorf("%q: %+v", text, c)
		}
	})
}
