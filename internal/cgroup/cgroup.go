// Package cgroup finds the directories of the control groups in which processes and threads are.
package cgroup

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Group is the control group of a process or thread in one hierarchy.
type Group struct {
	Unified bool   // the hierarchy is that of version 2
	Mount   string // where the hierarchy is mounted
	Path    string // of the group below it: / is the mount's root
}

// Dir is the group's directory.
func (g *Group) Dir() string { return filepath.Join(g.Mount, g.Path) }

// Groups returns the groups in which a controller may be, by the lines of a process's or thread's /proc/PID/cgroup and of this
// process's /proc/self/mountinfo: that of version 2, and of those of version 1 the one that has the controller.
func Groups(cgroup, mountinfo []byte, controller string) (all []Group) {
	for line := range strings.Lines(string(cgroup)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		unified := parts[0] == "0" && parts[1] == ""
		if !unified && !hasWord(parts[1], controller) {
			continue
		}
		mount, at := hierarchy(mountinfo, controller, unified)
		if mount == "" {
			continue
		}
		// In a namespace or container the mount has only a part of the hierarchy.
		path := parts[2]
		if rest, below := strings.CutPrefix(path, strings.TrimSuffix(at, "/")); below {
			path = rest
		}
		all = append(all, Group{unified, mount, filepath.Clean("/" + path)})
	}
	return all
}

// hierarchy returns the mount point of a hierarchy, and the group that is the root of the mount.
func hierarchy(mountinfo []byte, controller string, unified bool) (mount, at string) {
	for line := range strings.Lines(string(mountinfo)) {
		before, after, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(kind) < 3 {
			continue
		}
		if unified && kind[0] == "cgroup2" || !unified && kind[0] == "cgroup" && hasWord(kind[2], controller) {
			return unescape(fields[4]), unescape(fields[3])
		}
	}
	return "", ""
}

// unescape replaces what the kernel writes for blanks and backslashes in a path: three octal digits.
func unescape(path string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(path, `\`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		c, err := uint64(0), strconv.ErrSyntax
		if len(after) >= 3 {
			c, err = strconv.ParseUint(after[:3], 8, 8)
		}
		if err != nil {
			b.WriteByte('\\')
			path = after
			continue
		}
		b.WriteByte(byte(c))
		path = after[3:]
	}
}

func hasWord(list, word string) bool { return slices.Contains(strings.Split(list, ","), word) }
