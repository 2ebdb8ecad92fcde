package keymap

import (
	"slices"
	"testing"
)

func TestTableIsConsistent(t *testing.T) {
	keys, actions := map[string]Action{}, map[Action]bool{}
	for _, s := range Table {
		for _, b := range s.Bindings {
			if actions[b.Action] {
				t.Errorf("%s is bound twice", b.Action)
			}
			actions[b.Action] = true
			if b.Help == "" || b.Show == "" || len(b.Keys) == 0 {
				t.Errorf("%s: %+v", b.Action, b)
			}
			for _, k := range b.Keys {
				if other, ok := keys[k]; ok {
					t.Errorf("key %q: %s and %s", k, other, b.Action)
				}
				keys[k] = b.Action
			}
		}
	}
	for _, a := range slices.Concat(footerFirst, footerLast) {
		if b := Of(a); b == nil || b.Short == "" || b.Planned != "" {
			t.Errorf("the footer names %s, which has no short text or does nothing", a)
		}
	}
}

func TestFooterFits(t *testing.T) {
	on := func(Action) string { return "" }
	for width := range 220 {
		used := 0
		for _, b := range Footer(width, on) {
			used += len(b.FirstKey()) + len(b.Short) + 3
		}
		if used > width {
			t.Errorf("width %d: the footer needs %d", width, used)
		}
	}
	f := Footer(80, on)
	if f[len(f)-1].Action != Quit || f[len(f)-2].Action != Help {
		t.Error("help and quit must end the footer")
	}
	off := Footer(200, func(a Action) string {
		if a == Focus {
			return "nothing is selected"
		}
		return ""
	})
	if slices.ContainsFunc(off, func(b *Binding) bool { return b.Action == Focus }) {
		t.Error("the footer offers a key that is off")
	}
}
