package profile

import (
	"fmt"
	"path"
	"strings"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// Programs returns the programs of a log that has code of several programs' own modules, by the
// log's module, named by their files: by the last part of the path where that distinguishes them.
// It is empty where there is no more than one.
func (p *Profile) Programs() map[uint32]string {
	p.programs.once.Do(func() {
		own := make(map[uint32]bool)
		for i := range p.Symbols.Bindings {
			if id := p.Symbols.Bindings[i].Program; id != 0 {
				own[id] = true
			}
		}
		if len(own) < 2 {
			return
		}
		p.programs.of = make(map[uint32]string)
		count, paths := make(map[string]int), make(map[string]int)
		for i := range p.Modules {
			if m := &p.Modules[i]; own[m.ID] {
				count[path.Base(m.Path)]++
				paths[m.Path]++
			}
		}
		for i := range p.Modules {
			m := &p.Modules[i]
			if !own[m.ID] {
				continue
			}
			name := path.Base(m.Path)
			if count[name] > 1 {
				name = m.Path
			}
			if paths[m.Path] > 1 && len(m.BuildID) > 0 {
				name = fmt.Sprintf("%s@%.4x", path.Base(m.Path), m.BuildID) // several builds, one after the other
			}
			p.programs.of[m.ID] = name
		}
	})
	return p.programs.of
}

// programOf returns the name of the program that a binding belongs to; empty in a log of one
// program, and for code that several programs may have.
func (p *Profile) programOf(b *columns.Binding) string {
	if b.Program == 0 {
		return ""
	}
	return p.Programs()[b.Program]
}

// ofProgram is a name with the program that it belongs to.
func ofProgram(name, program string) string {
	if program == "" {
		return name
	}
	return name + " [" + program + "]"
}

// Plain returns the element's name without its program: "Main.main" of "Main.main [server]".
func (e *Element) Plain() string {
	if e.Program == "" {
		return e.Name
	}
	return strings.TrimSuffix(e.Name, " ["+e.Program+"]")
}

// putOwn is put for an element of a binding's program: elements of the same name in several
// programs are kept apart, and say whose they are.
func (ix *levelIndex) putOwn(p *Profile, b *columns.Binding, k elementKey, make func() Element) ElementID {
	program := p.programOf(b)
	if program == "" {
		return ix.put(k, make)
	}
	k.program = b.Program
	return ix.put(k, func() Element {
		e := make()
		e.Program, e.Name = program, ofProgram(e.Name, program)
		return e
	})
}

// Program returns the log's modules of a name or path.
func (p *Profile) Program(name string) (modules []uint32) {
	for i := range p.Modules {
		if m := &p.Modules[i]; m.Path == name || path.Base(m.Path) == name {
			modules = append(modules, m.ID)
		}
	}
	return modules
}

// runsIn returns for each node whether its stack has code of one of some programs.
func (p *Profile) runsIn(programs []string) []bool {
	of := make(map[uint32]bool)
	for _, name := range programs {
		for _, id := range p.Program(name) {
			of[id] = true
		}
	}
	on := make([]bool, len(p.Nodes.Parent))
	for n := 1; n < len(on); n++ {
		on[n] = on[p.Nodes.Parent[n]]
		if k := p.Nodes.Kind[n]; !on[n] && k != eventlog.FrameContext {
			at := p.Places[p.Nodes.Place[n]]
			on[n] = at.Class == columns.PlaceUser && of[at.Module]
		}
	}
	return on
}
