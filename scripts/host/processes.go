package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// programs are those that run, with arguments for longer than any measurement.
var programs = [][]string{
	{"server", "400000000000", "20", "4", "+RTS", "-N2"},
	{"pingpong", "100000000000"},
	{"stm", "1000000000"},
	{"alloc31", "1000000000"},
	{"maps", "20000", "1000000000"},
	{"timers", "1000000000", "20000", "50000"},
}

// running is a started program.
type running struct {
	cmd   *exec.Cmd
	group *group
	begun time.Time
	ended chan struct{}
}

func (r *running) stop() {
	r.cmd.Process.Kill()
	<-r.ended
}

// population are the processes of the host.
type population struct {
	o    *options
	all  []*running
	temp []string // folders in the releases' roots
	in   map[string]string
}

// newPopulation puts the programs into the releases' roots.
func newPopulation(o *options) (*population, error) {
	p := &population{o: o, in: map[string]string{}}
	for release, root := range o.roots {
		dir, err := os.MkdirTemp(filepath.Join(root, "tmp"), "host-")
		if err != nil {
			return p, err
		}
		p.temp, p.in[release] = append(p.temp, dir), dir
		if err := os.Chmod(dir, 0o755); err != nil {
			return p, err
		}
		for _, of := range p.from(release) {
			for _, program := range programs {
				to := filepath.Join(dir, of)
				if err := os.MkdirAll(to, 0o755); err != nil {
					return p, err
				}
				text, err := os.ReadFile(filepath.Join(o.programs, of, "container", program[0]))
				if err != nil {
					return p, err
				}
				if err := os.WriteFile(filepath.Join(to, program[0]), text, 0o755); err != nil {
					return p, err
				}
			}
		}
	}
	return p, nil
}

// releases are those of the programs, in order.
func (p *population) releases() (all []string) {
	entries, err := os.ReadDir(p.o.programs)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// from lists the releases whose programs run in a release's root: its own, and in the oldest one those of
// releases without a root.
func (p *population) from(root string) (all []string) {
	for _, r := range p.releases() {
		if p.rootOf(r) == root {
			all = append(all, r)
		}
	}
	return all
}

func (p *population) rootOf(release string) string {
	if _, ok := p.o.roots[release]; ok {
		return release
	}
	return slices.Sorted(maps.Keys(p.o.roots))[0]
}

// start starts the n-th process: the programs in turn, then the releases, every other one in namespaces.
func (p *population) start(n int) error {
	releases := p.releases()
	program := programs[n/2%len(programs)]
	release := releases[n/2/len(programs)%len(releases)]
	g, err := newGroup(fmt.Sprint(n))
	if err != nil {
		return err
	}
	r := &running{group: g, ended: make(chan struct{})}
	if err := g.limitCPU(p.o.busy * float64(runtime.NumCPU()) / float64(p.o.processes)); err != nil {
		return err
	}
	exe := filepath.Join(p.o.programs, release, "host", program[0])
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if n%2 == 1 {
		root := p.rootOf(release)
		exe = strings.TrimPrefix(filepath.Join(p.in[root], release, program[0]), p.o.roots[root])
		attr.Chroot, attr.Cloneflags = p.o.roots[root], syscall.CLONE_NEWPID|syscall.CLONE_NEWNS
	}
	r.cmd = exec.Command(exe, program[1:]...)
	r.cmd.Dir, r.cmd.SysProcAttr = "/", attr
	r.cmd.Env = []string{"LANG=C.UTF-8", fmt.Sprintf("OTEL_SERVICE_NAME=%s-%d", program[0], n)}
	r.begun = time.Now()
	if err := r.cmd.Start(); err != nil {
		return fmt.Errorf("start %s of GHC %s: %w", program[0], release, err)
	}
	go func() {
		r.cmd.Wait()
		close(r.ended)
	}()
	p.all = append(p.all, r)
	return g.add(r.cmd.Process.Pid)
}

// check is an error if a process has ended.
func (p *population) check() error {
	for _, r := range p.all {
		select {
		case <-r.ended:
			return fmt.Errorf("%v has ended: %v", r.cmd.Args, r.cmd.ProcessState)
		default:
		}
	}
	return nil
}

func (p *population) stop() {
	for _, r := range p.all {
		r.stop()
		r.group.remove()
	}
	for _, dir := range p.temp {
		os.RemoveAll(dir)
	}
}
