package ui

import (
	"slices"

	"ccagent/ui/keymap"
	"ccagent/ui/screen"
	"ccagent/ui/screen/alloc"
	"ccagent/ui/screen/centres"
	"ccagent/ui/screen/chart"
	"ccagent/ui/screen/code"
	"ccagent/ui/screen/diff"
	"ccagent/ui/screen/diffflame"
	"ccagent/ui/screen/dump"
	"ccagent/ui/screen/flame"
	"ccagent/ui/screen/heap"
	"ccagent/ui/screen/hot"
	"ccagent/ui/screen/source"
	"ccagent/ui/screen/threads"
)

// kinds lists all screens. Their order gives their numbers, keys and tabs; see keymap.New.
var kinds = []screen.Kind{hot.Kind, source.Kind, flame.Kind, centres.Kind, heap.Kind, diff.Kind, alloc.Kind, diffflame.Kind, chart.Kind, threads.Kind, dump.Kind, code.Kind}

// keyTable has the common keys and those of all screens.
var keyTable = keysOf(kinds)

func keysOf(kinds []screen.Kind) *keymap.Map {
	var ks []keymap.Screen
	for i := range kinds {
		k := kinds[i].Keys
		k.Name = kinds[i].Name
		ks = append(ks, k)
	}
	return keymap.New(ks)
}

// screenNamed is the place of the screen with a name, or −1.
func screenNamed(name string) int {
	return slices.IndexFunc(kinds, func(k screen.Kind) bool { return k.Name == name })
}

// screenKey is the key that opens the screen with a name.
func screenKey(name string) string {
	return keyTable.Of(keymap.OpenScreen(screenNamed(name))).FirstKey()
}
