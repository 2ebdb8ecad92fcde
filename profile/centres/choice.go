package centres

import (
	"slices"
	"strings"

	"ccagent/profile"
	"ccagent/profile/columns"
)

// Without returns the centres except those with the given names. The costs of removed
// centres go to the centres around or below them. List does not change.
func (c *Found) Without(dropped map[string]bool) *Found {
	if len(dropped) == 0 {
		return c
	}
	off := make([]bool, len(c.List))
	for i := range c.List {
		off[i] = dropped[c.List[i].Name]
	}
	out := &Found{List: c.List, Missed: c.Missed, p: c.p, evaluated: c.evaluated, spans: make(map[columns.FileID][]spanCentre, len(c.spans))}
	for _, l := range []struct{ from, to *[]int32 }{{&c.binding, &out.binding}, {&c.module, &out.module}, {&c.pkg, &out.pkg}} {
		*l.to = slices.Clone(*l.from)
		for i, centre := range *l.to {
			if centre != 0 && off[centre-1] {
				(*l.to)[i] = 0
			}
		}
	}
	for f, sps := range c.spans {
		out.spans[f] = slices.DeleteFunc(slices.Clone(sps), func(s spanCentre) bool { return off[s.centre] })
	}
	return out
}

// Chosen returns the set to save for the centres except those with the given names. If no
// centre is removed, it is the original set.
func (c *Found) Chosen(set Set, dropped map[string]bool) Set {
	if len(dropped) == 0 {
		return set
	}
	var out Set
	named := make(map[string]bool)
	for _, p := range set.Patterns {
		if p.Name != "" {
			named[p.Name] = true
			if !dropped[p.Name] {
				out.Patterns = append(out.Patterns, p)
			}
		}
	}
	escape := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`)
	for i := range c.List {
		x := &c.List[i]
		if dropped[x.Name] || named[x.Name] {
			continue
		}
		p := Pattern{HasLevel: true, Level: x.Level(), Glob: escape.Replace(x.Name)}
		if p.Level == profile.LevelSpan {
			p.Glob = x.Name // a region of source, not a glob
		}
		out.Patterns = append(out.Patterns, p)
	}
	return out
}

// Level returns what a centre is: a binding, module, package, file or span.
func (x *Centre) Level() profile.Level {
	switch {
	case x.Span != "" && x.Name == x.Span:
		return profile.LevelSpan
	case x.Module != "" && x.Name == x.Module:
		return profile.LevelModule
	case x.Package != "" && x.Name == x.Package:
		return profile.LevelPackage
	case x.Module != "" && strings.HasPrefix(x.Name, x.Module+".") || x.Module != "" && strings.HasPrefix(x.Name, x.Module+" "):
		return profile.LevelBinding
	case x.Module == "":
		return profile.LevelBinding
	}
	return profile.LevelFile
}
