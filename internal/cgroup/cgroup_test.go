package cgroup

import (
	"slices"
	"testing"
)

func TestGroups(t *testing.T) {
	const mounts = "25 20 0:23 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n" +
		"26 20 0:24 /docker/c1 /sys/fs/cgroup/cpu\\040a\\134b rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"27 20 0:25 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" +
		"nonsense - \n"
	for _, c := range []struct {
		name, cgroup, controller string
		want                     []Group
	}{
		{"version 1", "6:freezer:/a/b\n0::/\n", "freezer", []Group{{false, "/sys/fs/cgroup/freezer", "/a/b"}, {true, "/sys/fs/cgroup/unified", "/"}}},
		{"a part of the hierarchy, blanks", "1:cpu,cpuacct:/docker/c1/x\n", "cpuacct", []Group{{false, `/sys/fs/cgroup/cpu a\b`, "/x"}}},
		{"outside of the namespace", "6:freezer:/../../etc\n", "freezer", []Group{{false, "/sys/fs/cgroup/freezer", "/etc"}}},
		{"not mounted", "3:memory:/a\n", "memory", nil},
		{"nonsense", "freezer\n::\n", "freezer", nil},
	} {
		if got := Groups([]byte(c.cgroup), []byte(mounts), c.controller); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func FuzzGroups(f *testing.F) {
	f.Add([]byte("6:freezer:/a\n"), []byte("25 20 0:23 / /sys/fs/cgroup/free\\040zer rw - cgroup cgroup rw,freezer\n"))
	f.Fuzz(func(t *testing.T, cgroup, mountinfo []byte) {
		for _, g := range Groups(cgroup, mountinfo, "freezer") {
			if g.Mount == "" || g.Path == "" || g.Path[0] != '/' {
				t.Errorf("%+v", g)
			}
		}
	})
}
