package model

import (
	"maps"
	"slices"
	"testing"

	"ccagent/profile"
)

// A module's own file stands for it where that is certain; then there is one row.
func TestWholeModules(t *testing.T) {
	group := func(module string, files ...string) profile.Group {
		g := profile.Group{Row: profile.Row{Element: &profile.Element{Name: module, Module: module, Kind: profile.KindSource}}}
		for _, f := range files {
			g.Members = append(g.Members, profile.Row{Element: &profile.Element{Module: module, File: f, Kind: profile.KindSource}})
		}
		return g
	}
	groups := []profile.Group{
		group("Main", "", "Main.hs", "Main.hs"),
		group("Data.Map", "", ""),           // a library without notes
		group("Lexer", "Lexer.hs"),          // all of it is in its file
		group("Parser", "", "A.hs", "B.hs"), // whose is what has no file?
		group("One", "", "Shared.hs"), group("Two", "", "Shared.hs"),
	}
	got := wholeModules(groups)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"Main.hs"}) || got["Main.hs"] != &groups[0] {
		t.Errorf("files that stand for modules: %v", names)
	}
}

func TestShortNames(t *testing.T) {
	for name, want := range map[string]string{
		"Data.Map.insert":                     "insert",
		"Data.Map (instance Show Map)":        "(instance Show Map)",
		"Data.Map (local code before insert)": "(local code before insert)",
		"Data.Mapping.insert":                 "Data.Mapping.insert",
		"Data.Map":                            "Data.Map",
	} {
		if got := short(&profile.Element{Name: name, Module: "Data.Map"}); got != want {
			t.Errorf("%q is called %q, want %q", name, got, want)
		}
	}
}
