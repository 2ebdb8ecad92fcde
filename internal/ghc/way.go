package ghc

import (
	"slices"
	"strings"
)

// Way is the variant of the run-time system that a program is linked with, as the
// run-time system itself names it: "rts_v", "rts_thr", "rts_thr_p", "rts_thr_debug_dyn".
// It is empty if not known.
type Way string

// Has reports whether a part is in the way: "thr", "p", "debug", "l", "dyn".
func (w Way) Has(part string) bool { return slices.Contains(strings.Split(string(w), "_"), part) }

// Profiled reports whether the program was linked with -prof.
func (w Way) Profiled() bool { return w.Has("p") }

// Threaded reports whether the program was linked with -threaded.
func (w Way) Threaded() bool { return w.Has("thr") }

// Debug reports whether the program was linked with -debug, which -ticky implies.
func (w Way) Debug() bool { return w.Has("debug") }

// Linked gives the way of the run-time system that is the same but for being linked in: "rts_v" of "rts_dyn".
func (w Way) Linked() Way {
	if w == "rts_dyn" {
		return "rts_v"
	}
	return Way(strings.TrimSuffix(string(w), "_dyn"))
}
