package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// group is a control group, of version 2 or in each hierarchy of version 1.
type group struct {
	name string
	v2   bool
}

const cgroups = "/sys/fs/cgroup"

func newGroup(name string) (*group, error) {
	_, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers"))
	g := &group{name: fmt.Sprintf("ccagent-host-%d-%s", os.Getpid(), name), v2: err == nil}
	for _, dir := range g.dirs() {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (g *group) dirs() (all []string) {
	if g.v2 {
		return []string{filepath.Join(cgroups, g.name)}
	}
	for _, controller := range []string{"cpu", "cpuacct", "memory"} {
		all = append(all, filepath.Join(cgroups, controller, g.name))
	}
	return all
}

func (g *group) file(controller, name string) string {
	if g.v2 {
		return filepath.Join(cgroups, g.name, name)
	}
	return filepath.Join(cgroups, controller, g.name, name)
}

func (g *group) remove() error {
	var errs []error
	for _, dir := range g.dirs() {
		errs = append(errs, os.Remove(dir))
	}
	return errors.Join(errs...)
}

// enter is a shell command line that joins the group and executes what follows.
func (g *group) enter(argv []string) []string {
	var script strings.Builder
	for _, dir := range g.dirs() {
		fmt.Fprintf(&script, "echo $$ > %s/cgroup.procs && ", dir)
	}
	script.WriteString(`exec "$0" "$@"`)
	return append([]string{"/bin/sh", "-c", script.String()}, argv...)
}

// add moves a process into the group.
func (g *group) add(pid int) error {
	var errs []error
	for _, dir := range g.dirs() {
		errs = append(errs, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0))
	}
	return errors.Join(errs...)
}

// limitCPU limits the group to a share of one CPU.
func (g *group) limitCPU(share float64) error {
	const period = 100_000
	quota := max(int(share*period), 1000) // the least that the kernel takes
	if g.v2 {
		return os.WriteFile(g.file("", "cpu.max"), fmt.Appendf(nil, "%d %d", quota, period), 0)
	}
	return os.WriteFile(g.file("cpu", "cpu.cfs_quota_us"), fmt.Append(nil, quota), 0)
}

// cpu is what the group's processes have used.
func (g *group) cpu() (time.Duration, error) {
	if g.v2 {
		us, err := g.field("", "cpu.stat", "usage_usec")
		return time.Duration(us) * time.Microsecond, err
	}
	ns, err := number(g.file("cpuacct", "cpuacct.usage"))
	return time.Duration(ns), err
}

// peak is the most memory that was charged to the group, with the cache of files, in bytes.
func (g *group) peak() (int64, error) {
	if g.v2 {
		return number(g.file("", "memory.peak"))
	}
	return number(g.file("memory", "memory.max_usage_in_bytes"))
}

// held is the memory that the group's processes, and the kernel for them, hold now: without the cache
// of files, in bytes.
func (g *group) held() (int64, error) {
	all, anonymous, kernel := "memory.current", "anon", "kernel"
	if g.v2 {
		anon, err := g.field("", "memory.stat", anonymous)
		if err != nil {
			return 0, err
		}
		inKernel, err := g.field("", "memory.stat", kernel)
		return anon + inKernel, err
	}
	all = "memory.usage_in_bytes"
	usage, err := number(g.file("memory", all))
	if err != nil {
		return 0, err
	}
	cache, err := g.field("memory", "memory.stat", "total_cache")
	return usage - cache, err
}

func (g *group) field(controller, file, name string) (int64, error) {
	text, err := os.ReadFile(g.file(controller, file))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			return strconv.ParseInt(f[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s", file, name)
}

func number(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}
