package profile

import (
	"regexp"
	"strings"

	"ccagent/profile/columns"
)

// This file has the transforms that change the frames of stacks but keep every sample:
// merging removes frames by their names, and collapsing shows a module or package as one
// frame and one element.

// nameScope is the part of a binding's name that an expression is matched against.
type nameScope uint8

const (
	scopeName nameScope = iota
	scopeModule
	scopePackage
)

const (
	modulePrefix  = "module "
	packagePrefix = "package "
)

// scopeOf returns an expression's scope: one that begins with "^module " or "^package "
// is only matched against "module NAME" or "package NAME".
func scopeOf(re *regexp.Regexp) nameScope {
	switch s := re.String(); {
	case strings.HasPrefix(s, "^"+modulePrefix):
		return scopeModule
	case strings.HasPrefix(s, "^"+packagePrefix):
		return scopePackage
	}
	return scopeName
}

// ExactModule returns an expression that matches the code of one module.
func ExactModule(name string) string { return "^" + modulePrefix + regexp.QuoteMeta(name) + "$" }

// ExactPackage returns an expression that matches the code of one package.
func ExactPackage(name string) string { return "^" + packagePrefix + regexp.QuoteMeta(name) + "$" }

// of returns the name that an expression of this scope is matched against; empty if the
// binding has none.
func (sc nameScope) of(b *columns.Binding) string {
	switch {
	case sc == scopeModule && b.Module != "":
		return modulePrefix + b.Module
	case sc == scopePackage && b.Package != "":
		return packagePrefix + b.Package
	case sc != scopeName:
		return ""
	}
	return b.QualifiedName()
}

// grouping is the set of modules and packages that are collapsed.
type grouping struct {
	modules, packages []*regexp.Regexp
	known             map[[2]string]groupedAs // by package and module
}

type groupedAs struct {
	module, pkg bool
}

func newGrouping(res []*regexp.Regexp) *grouping {
	if len(res) == 0 {
		return nil
	}
	g := &grouping{known: make(map[[2]string]groupedAs)}
	for _, re := range res {
		if scopeOf(re) == scopePackage {
			g.packages = append(g.packages, re)
		} else {
			g.modules = append(g.modules, re)
		}
	}
	return g
}

// of returns how a binding's code is collapsed. Packages take precedence over modules.
func (g *grouping) of(b *columns.Binding) groupedAs {
	if g == nil || b.Module == "" {
		return groupedAs{}
	}
	k := [2]string{b.Package, b.Module}
	as, ok := g.known[k]
	if ok {
		return as
	}
	for _, re := range g.packages {
		as.pkg = as.pkg || b.Package != "" && re.MatchString(packagePrefix+b.Package)
	}
	for _, re := range g.modules {
		name := b.Module
		if scopeOf(re) == scopeModule {
			name = modulePrefix + name
		}
		as.module = as.module || re.MatchString(name)
	}
	as.module = as.module && !as.pkg
	g.known[k] = as
	return as
}

// groupElement returns the element of a collapsed module or package. It has the same id
// in every selection.
func (ix *levelIndex) groupElement(b *columns.Binding, as groupedAs) ElementID {
	if as.pkg {
		return ix.put(elementKey{KindCollapsed, b.Package, "", columns.Extent{}, 0}, func() Element {
			return Element{Kind: KindCollapsed, Name: b.Package, Package: b.Package}
		})
	}
	return ix.put(elementKey{KindCollapsed, b.Package, b.Module, columns.Extent{}, 0}, func() Element {
		return Element{Kind: KindCollapsed, Name: b.Module, Module: b.Module, Package: b.Package}
	})
}

// groupElements creates the elements of all modules and packages, so that they have the
// same ids in every selection.
func (ix *levelIndex) groupElements(p *Profile) {
	if ix.level != LevelBinding && ix.level != LevelFunction && ix.level != LevelModule {
		return
	}
	for i := range p.Symbols.Bindings {
		b := &p.Symbols.Bindings[i]
		if b.Module != "" && ix.level != LevelModule {
			ix.groupElement(b, groupedAs{module: true})
		}
		if b.Module != "" && b.Package != "" {
			ix.groupElement(b, groupedAs{pkg: true})
		}
	}
}

// Frames returns the frames that stacks are shown with: the profile's, with collapsed
// modules and packages replaced.
func (s *Selection) Frames() *Frames {
	if s.group == nil {
		return s.Profile.frameTable()
	}
	s.grouped.once.Do(func() {
		p := s.Profile
		base := p.frameTable()
		t := &Frames{List: base.List[:len(base.List):len(base.List)], Of: make([]uint32, len(base.Of)), Inlined: base.Inlined, byKey: make(map[frameKey]uint32)}
		for id := range base.Of {
			t.Of[id] = base.Of[id]
			b := p.frameBinding(uint32(id))
			as := s.group.of(b)
			if !as.module && !as.pkg {
				continue
			}
			f := Frame{Name: b.Module, Module: b.Module, Package: b.Package, Category: p.Locations[id].Category, Kind: KindCollapsed}
			if as.pkg {
				f.Name, f.Module = b.Package, ""
			}
			t.Of[id] = t.intern(f)
		}
		t.byKey = nil
		s.grouped.frames = t
	})
	return s.grouped.frames
}

// frameBinding returns the binding whose module and package a place's frame has.
func (p *Profile) frameBinding(place uint32) *columns.Binding {
	owner := p.Owner(place)
	return &p.Symbols.Bindings[p.Symbols.Bindings[owner].Source]
}

// mergedPlaces returns for each place whether its frame is merged into its caller: if its
// own name or its displayed name matches.
func (s *Selection) mergedPlaces(res []*regexp.Regexp) []bool {
	base, shown := s.Profile.frameTable(), s.Frames()
	hit := make([]int8, len(shown.List))
	match := func(id uint32) bool {
		if hit[id] == 0 {
			hit[id] = -1
			f := &shown.List[id]
			for _, re := range res {
				name := f.Name
				switch scopeOf(re) {
				case scopeModule:
					name = modulePrefix + f.Module
				case scopePackage:
					name = packagePrefix + f.Package
				}
				if re.MatchString(name) {
					hit[id] = 1
				}
			}
		}
		return hit[id] == 1
	}
	out := make([]bool, len(base.Of))
	for id := range out {
		if s.Profile.Places[id].Class.Named() {
			out[id] = match(base.Of[id]) || match(shown.Of[id])
		}
	}
	return out
}
