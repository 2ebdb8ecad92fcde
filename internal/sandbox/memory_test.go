package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// The tightest of a process's control groups counts, in either version, and also where a
// container sees only a part of the hierarchy.
func TestMemoryLeft(t *testing.T) {
	const mb = 1 << 20
	for name, c := range map[string]struct {
		files map[string]string
		left  uint64
		group string
		ok    bool
	}{
		"version 2": {map[string]string{
			"proc/self/cgroup":                       "0::/a/b\n",
			"proc/self/mountinfo":                    "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/a/b/memory.max":           "max\n",
			"sys/fs/cgroup/a/b/memory.current":       "1048576\n",
			"sys/fs/cgroup/a/memory.max":             "62914560\n",
			"sys/fs/cgroup/a/memory.current":         "31457280\n",
			"sys/fs/cgroup/a/memory.stat":            "anon 5\ninactive_file 10485760\nactive_file 0\n",
			"sys/fs/cgroup/memory.stat":              "anon 5\n",
			"sys/fs/cgroup/unrelated/memory.max":     "1\n",
			"sys/fs/cgroup/unrelated/memory.current": "1\n",
		}, 40 * mb, "/a", true},
		"version 1": {map[string]string{
			"proc/self/cgroup":                            "9:name=systemd:/x\n4:cpu,memory:/docker/c1\n0::/x\n",
			"proc/self/mountinfo":                         "30 23 0:27 /docker/c1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":  "62914560\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes":  "73400320\n",
			"sys/fs/cgroup/memory/memory.stat":            "inactive_file 1\ntotal_inactive_file 20971520\n",
			"sys/fs/cgroup/memory/a/memory.usage_in_byte": "",
		}, 10 * mb, "/", true},
		"no limit": {map[string]string{
			"proc/self/cgroup":                           "4:memory:/\n",
			"proc/self/mountinfo":                        "30 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "5\n",
		}, 0, "", false},
		"not mounted": {map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": "nonsense - \n"}, 0, "", false},
		"nothing":     {nil, 0, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for path, text := range c.files {
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if left, group, ok := memoryLeft(root); left != c.left || group != c.group || ok != c.ok {
				t.Errorf("%d bytes in %q, %t; want %d in %q, %t", left, group, ok, c.left, c.group, c.ok)
			}
		})
	}
}
